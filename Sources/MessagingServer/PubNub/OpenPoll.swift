internal import AccessControl
internal import ApplicationStore
internal import Foundation
internal import MessagingQueue
internal import NIOCore
internal import Realtime
internal import Synchronization

/// A subscriber that waits for its next events: it is answered once, by whatever comes first.
final class OpenPoll: Sendable {
  private struct State {
    var place: Timetoken
    var subscriber: SubscriberID?
    var waitCount = 0
    var timer: Scheduled<Void>?
    /// When the caller's right to wait ends; nil for never.
    var end: Date?
    var isEnded = false
  }

  let exchange: HTTPExchange
  let caller: PubNubCaller
  let call: SubscribeCall
  let filter: FilterExpression?
  private let events: SharedEvents
  private let state: Mutex<State>
  /// Takes the poll off its list.
  private let didEnd: @Sendable (OpenPoll) -> Void

  init(
    _ exchange: HTTPExchange, _ caller: PubNubCaller, _ call: SubscribeCall, after place: Timetoken,
    filter: FilterExpression?, until end: Date?, _ events: SharedEvents,
    didEnd: @escaping @Sendable (OpenPoll) -> Void
  ) {
    self.exchange = exchange
    self.caller = caller
    self.call = call
    self.filter = filter
    self.events = events
    self.didEnd = didEnd
    state = Mutex(State(place: place, end: end))
  }

  /// The place up to which the subscriber has everything.
  var place: Timetoken { state.withLock { $0.place } }

  var isEnded: Bool { state.withLock { $0.isEnded } }

  /// When the caller's right to wait ends; nil for never.
  var end: Date? {
    get { state.withLock { $0.end } }
    set { state.withLock { $0.end = newValue } }
  }

  /// Begins to wait in `realtime`, from the poll's place on, instead of an earlier wait.
  func wait(for subscription: Subscription, in realtime: Realtime) {
    let begun = state.withLock { state -> (number: Int, place: Timetoken)? in
      guard !state.isEnded else { return nil }
      state.waitCount += 1
      return (state.waitCount, state.place)
    }
    guard let begun else { return }
    let id = realtime.poll(subscription, after: begun.place) { [self] result in
      take(result, begun.number, subscription, realtime)
    }
    let superseded = state.withLock { state -> SubscriberID? in
      // Events that were there already have been taken before: they have ended the poll, or begun a later wait.
      guard !state.isEnded, state.waitCount == begun.number else { return id }
      defer { state.subscriber = id }
      return state.subscriber
    }
    if let superseded { realtime.cancel(superseded) }
  }

  private func take(
    _ result: Result<Events, EngineError>, _ number: Int, _ subscription: Subscription,
    _ realtime: Realtime
  ) {
    switch result {
    case .success(let found):
      var answer = PendingAnswer(found, of: number)
      if let filter {
        self.filter(answer, by: filter, subscription, realtime)
      } else {
        while let event = answer.events.popFirst() { append(event, to: &answer) }
        self.answer(answer.envelope.response, realtime)
      }
    case .failure:
      // The server stops, or its vault was locked: the client asks again, and is held until the next unlock.
      answer(SubscribeEnvelope(place).response, realtime)
    }
  }

  /// An answer of which some events are not looked at yet.
  private struct PendingAnswer: Sendable {
    /// Of the wait.
    let number: Int
    var events: ArraySlice<Events.Event>
    let end: Timetoken
    var envelope: SubscribeEnvelope
    var isEmpty = true

    init(_ found: Events, of number: Int) {
      self.number = number
      events = found.events[...]
      end = found.end
      envelope = SubscribeEnvelope(end)
    }
  }

  private func append(_ event: Events.Event, to answer: inout PendingAnswer) {
    let json = events.shared(event.event)
      .json(subscribeKey: caller.application.application.subscribeKey)
    answer.envelope.append(json, through: event.source)
    answer.isEmpty = false
  }

  /// Evaluates the filter in turn with those of other subscribers, and answers or waits on.
  ///
  /// Each turn has a slice of the events. It ends the work for a client that has left, and for one that waits for other
  /// channels now.
  private func filter(
    _ answer: PendingAnswer, by filter: FilterExpression, _ subscription: Subscription,
    _ realtime: Realtime
  ) {
    realtime.makeLongCall(of: caller.application.application.name) { [self] in
      guard state.withLock({ !$0.isEnded && $0.waitCount == answer.number }) else { return }
      var answer = answer
      var stepCount = FilterExpression.sliceStepCount
      while stepCount > 0, let event = answer.events.popFirst() {
        if events.shared(event.event).passes(filter, &stepCount) { append(event, to: &answer) }
      }
      if !answer.events.isEmpty {
        self.filter(answer, by: filter, subscription, realtime)
      } else if answer.isEmpty {
        // The filter has left nothing: continue behind it.
        state.withLock { $0.place = answer.end }
        wait(for: subscription, in: realtime)
      } else {
        self.answer(answer.envelope.response, realtime)
      }
    }
  }

  /// Answers after a time, unless something else does before.
  func answerWithoutEvents(after time: Duration, _ realtime: Realtime) {
    let timer = exchange.eventLoop.scheduleTask(in: TimeAmount(time)) { [self] in
      answer(SubscribeEnvelope(place).response, realtime)
    }
    let isOver = state.withLock { state in
      state.timer = timer
      return state.isEnded
    }
    if isOver { timer.cancel() }
  }

  /// Answers, unless something else has.
  func answer(_ response: HTTPResponse, _ realtime: Realtime) {
    if finish(realtime) { exchange.answer(response) }
  }

  /// Ends the poll of a client that has left.
  func abandon(_ realtime: Realtime) { _ = finish(realtime) }

  private func finish(_ realtime: Realtime) -> Bool {
    let ended = state.withLock { state -> State? in
      guard !state.isEnded else { return nil }
      state.isEnded = true
      defer {
        state.subscriber = nil
        state.timer = nil
      }
      return state
    }
    guard let ended else { return false }
    ended.timer?.cancel()
    if let subscriber = ended.subscriber { realtime.cancel(subscriber) }
    didEnd(self)
    return true
  }
}

/// The polls that wait, for what ends them or changes what they listen to.
final class PollRegistry: Sendable {
  private struct State {
    var polls: [ObjectIdentifier: OpenPoll] = [:]
    var round = 0
  }

  private let state = Mutex(State())
  /// What the polls share of the newest events.
  let events = SharedEvents()
  /// The groups that the polls wait for.
  let groups = SharedGroups()

  var count: Int { state.withLock { $0.polls.count } }

  /// How often access or groups have changed: a poll that is decided before a round and added after it was missed by
  /// it.
  var round: Int { state.withLock { $0.round } }

  /// Begins a round, and returns the polls of it.
  func beginRound() -> [OpenPoll] {
    state.withLock { state in
      state.round += 1
      return Array(state.polls.values)
    }
  }

  /// The polls whose right to wait has ended.
  func ended(at now: Date) -> [OpenPoll] {
    state.withLock { Array($0.polls.values) }.filter { $0.end.map { $0 <= now } ?? false }
  }

  func add(_ poll: OpenPoll) {
    state.withLock { $0.polls[ObjectIdentifier(poll)] = poll }
    // It can have ended before it was on the list.
    if poll.isEnded { remove(poll) }
  }

  func remove(_ poll: OpenPoll) {
    _ = state.withLock { $0.polls.removeValue(forKey: ObjectIdentifier(poll)) }
  }
}
