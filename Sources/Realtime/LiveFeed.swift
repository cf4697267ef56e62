package import MessagingQueue
internal import Synchronization

/// The events of channels for a subscriber that stays connected, and adds and removes channels as it goes.
///
/// It gives a channel's events after the addition of the channel, each once and in their order.
package final class LiveFeed: Sendable {
  /// Takes events, never on two threads at the same time; a failure comes last.
  ///
  /// It must not block.
  package typealias Handler = @Sendable (Result<[LiveEvent], EngineError>) -> Void

  /// Calls `body` now or later.
  package typealias Scheduler = @Sendable (_ body: @escaping @Sendable () -> Void) -> Void

  private struct State {
    /// The place up to which the subscriber has everything.
    var place: Timetoken
    /// The channels, each with the place after which its events are for the subscriber.
    var starts: [Channel: Timetoken] = [:]
    var phase = Phase.idle
    var isEnded = false
  }

  private enum Phase {
    case idle
    /// A poll is being started, and its answer can come before its identity.
    case polling(number: Int, answer: Result<Events, EngineError>?, isStale: Bool)
    case waiting(number: Int, SubscriberID)
    case delivering
  }

  private let realtime: Realtime
  private let schedule: Scheduler
  private let handler: Handler
  private let state: Mutex<State>
  private let numbers = Atomic(0)

  /// A feed without channels.
  ///
  /// Each poll is one of all channels, so a subscriber that adds many should have them polled together.
  ///
  /// - Parameter schedule: when to poll after a change of the channels; no event is lost until then. Default:
  ///   immediately.
  package init(
    _ realtime: Realtime, schedule: @escaping Scheduler = { $0() }, _ handler: @escaping Handler
  ) {
    self.realtime = realtime
    self.schedule = schedule
    self.handler = handler
    state = Mutex(State(place: realtime.place))
  }

  /// Begins with a channel, at the end of what was distributed; does nothing for one that it has.
  package func add(_ channel: Channel) {
    let place = realtime.place
    change { state in
      if state.starts.isEmpty { state.place = max(state.place, place) }
      if state.starts[channel] == nil { state.starts[channel] = place }
    }
  }

  /// Ends a channel.
  package func remove(_ channel: Channel) { change { $0.starts[channel] = nil } }

  /// Ends all channels; events that are being delivered can still come.
  package func end() {
    let waiting = state.withLock { state -> SubscriberID? in
      state.isEnded = true
      state.starts = [:]
      guard case .waiting(_, let id) = state.phase else { return nil }
      state.phase = .idle
      return id
    }
    if let waiting { realtime.cancel(waiting) }
  }

  private func change(_ body: (inout State) -> Void) {
    let (runs, waiting) = state.withLock { state -> (Bool, SubscriberID?) in
      body(&state)
      switch state.phase {
      case .idle: return (true, nil)
      case .polling(let number, let answer, _):
        state.phase = .polling(number: number, answer: answer, isStale: true)
        return (false, nil)
      case .waiting(_, let id):
        state.phase = .idle
        return (true, id)
      case .delivering: return (false, nil)
      }
    }
    if let waiting { realtime.cancel(waiting) }
    // The first of several calls polls.
    if runs { schedule { [self] in run() } }
  }

  /// Polls and delivers until a poll waits; a loop, because an answer that is there already comes in the call.
  private func run() {
    while let number = poll() {
      let next = state.withLock { state -> (Result<Events, EngineError>?, SubscriberID?)? in
        guard case .polling(number.0, let answer, let isStale) = state.phase else { return nil }
        if let answer {
          state.phase = .delivering
          return (answer, nil)
        }
        if isStale || state.isEnded {
          state.phase = .idle
          return (nil, number.1)
        }
        state.phase = .waiting(number: number.0, number.1)
        return nil
      }
      guard let next else { return }
      if let stale = next.1 { realtime.cancel(stale) }
      if let answer = next.0, !deliver(answer) { return }
    }
  }

  /// Starts a poll; nil if another caller does that, or there is nothing to wait for.
  private func poll() -> (Int, SubscriberID)? {
    let number = numbers.wrappingAdd(1, ordering: .relaxed).newValue
    let begun = state.withLock { state -> (Subscription, Timetoken)? in
      guard case .idle = state.phase, !state.isEnded, !state.starts.isEmpty else { return nil }
      state.phase = .polling(number: number, answer: nil, isStale: false)
      return (Subscription(channels: state.starts.keys), state.place)
    }
    guard let (subscription, place) = begun else { return nil }
    return (number, realtime.poll(subscription, after: place) { [self] in take($0, of: number) })
  }

  private func take(_ answer: Result<Events, EngineError>, of number: Int) {
    let delivers = state.withLock { state in
      switch state.phase {
      case .polling(number, _, let isStale):
        state.phase = .polling(number: number, answer: answer, isStale: isStale)
        return false
      case .waiting(number, _):
        state.phase = .delivering
        return true
      // A later poll from the same place gets these events too.
      default: return false
      }
    }
    if delivers, deliver(answer) { run() }
  }

  /// Hands an answer out; false after the last one.
  private func deliver(_ answer: Result<Events, EngineError>) -> Bool {
    switch answer {
    case .success(let events):
      let new = state.withLock { state in
        state.place = events.end
        return events.events.map(\.event).filter { event in
          state.starts[event.message.channel].map { event.place > $0 } ?? false
        }
      }
      if !new.isEmpty { handler(.success(new)) }
      state.withLock { $0.phase = .idle }
      return true
    case .failure(let error):
      state.withLock { state in
        state.isEnded = true
        state.phase = .idle
      }
      handler(.failure(error))
      return false
    }
  }
}
