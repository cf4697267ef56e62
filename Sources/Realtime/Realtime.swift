package import MessagingQueue
internal import Synchronization

/// Distributes the log to live subscribers: one read of it after each commit, however many subscribers there are.
///
/// A subscriber whose place is near the end of the log is served from memory. One that comes from further back reads
/// the log once, and then joins the others. A message is neither lost nor repeated for a subscriber that continues from
/// the place it was given.
///
/// Events that are not stored come between the messages, in one order for all subscribers. They are in memory only: one
/// that comes from further back than the memory goes does not get them.
package final class Realtime: Sendable {
  /// Gets the end of a poll, on any thread and exactly once, unless the poll is cancelled.
  ///
  /// It must not block.
  package typealias Handler = @Sendable (Result<Events, EngineError>) -> Void

  private typealias Sender = CheckedContinuation<Result<[Timetoken], EngineError>, Never>

  private struct State {
    var distributor: Distributor
    /// Subscribers that wait or whose log is being read.
    var handlers: [SubscriberID: Handler] = [:]
    var feeds: [SubscriberID: LiveFeed.Handler] = [:]
    /// Senders whose events wait for places.
    var senders: [UInt64: Sender] = [:]
    var nextNumber: UInt64 = 0
    /// What of the log was undone, the oldest first, as of the last read.
    var undone: [UndoneRange]
    /// What other nodes had undone, as of the last read.
    private(set) var repaired: [PlaceRange]
    /// How often that has changed.
    private(set) var repairCount = 0
    /// Why the distribution has ended.
    var failure: EngineError?
    /// What is to be called.
    var calls = TurnQueue()
    /// Whether a thread makes the calls.
    var isCalling = false

    mutating func makeNumber() -> UInt64 {
      nextNumber += 1
      return nextNumber
    }

    /// Where a subscriber continues that has seen everything up to a place: earlier if that was undone since.
    func readingPlace(_ place: Timetoken) -> Timetoken {
      (undone.map(\.places) + repaired).filter { $0.affects(place) }.map(\.after).min() ?? place
    }

    /// Notes what other nodes had undone.
    ///
    /// A poll that waits in a new range ends without events: the next one begins before the range.
    mutating func note(_ ranges: [PlaceRange]) {
      guard ranges != repaired else { return }
      let known = repaired
      repaired = ranges
      repairCount += 1
      for (id, events) in distributor.removeWaiting(in: ranges.filter { !known.contains($0) }) {
        guard let handler = handlers.removeValue(forKey: id) else { continue }
        calls.append({ handler(.success(events)) }, of: "")
      }
    }

    /// Whether a thread must begin to make the calls.
    mutating func beginCalls() -> Bool {
      defer { isCalling = isCalling || !calls.isEmpty }
      return !isCalling && !calls.isEmpty
    }

    /// Notes the calls of a distribution, for ``Realtime/makeCalls()``.
    mutating func call(_ distribution: Distributor.Distribution) {
      for (id, events) in distribution.woken {
        guard let handler = handlers.removeValue(forKey: id) else { continue }
        calls.append(
          { handler(.success(events)) }, of: events.events.first?.event.application ?? "")
      }
      for (id, events) in distribution.fed {
        guard let handler = feeds[id] else { continue }
        calls.append({ handler(events) }, of: events.first?.application ?? "")
      }
      for (id, timetokens) in distribution.sent {
        guard let sender = senders.removeValue(forKey: id) else { continue }
        calls.append({ sender.resume(returning: .success(timetokens)) }, of: "")
      }
    }
  }

  private let engine: MessagingEngine
  private let state: Mutex<State>

  /// Begins at the end of the log.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package init(_ engine: MessagingEngine) async throws(EngineError) {
    self.engine = engine
    // Read before the end, so that what is undone between the two is noticed.
    let tail = try await engine.logTail(after: .greatest, maximumCount: 1)
    let window = EventWindow(at: try await engine.logEnd())
    state = Mutex(
      State(distributor: Distributor(window), undone: tail.undone, repaired: tail.repaired))
  }

  /// Distributes until the task is cancelled or the engine stops; call it once.
  ///
  /// All polls then end with `stopped`, or with the error.
  ///
  /// - Throws: the error of reading the log.
  package func run() async throws(EngineError) {
    do throws(EngineError) {
      while !Task.isCancelled {
        // Read before the log, so that a commit between the two ends the wait.
        let generation = engine.notifier.generation
        // Not while the log is read, so that the next read has all messages before the reserved places.
        if state.withLock({ $0.distributor.needsReservation }) { await reservePlaces() }
        let place = state.withLock { $0.distributor.readPlace }
        let tail = try await engine.logTail(after: place)
        if startsAgain(tail) { continue }
        let needsReservation = distribute(tail)
        if !tail.isAtEnd || needsReservation { continue }
        _ = await engine.notifier.waitForChange(after: generation)
      }
      end(EngineError(.stopped, "the distribution of messages has ended", hint: "ask again"))
    } catch {
      end(error)
      throw error
    }
  }

  /// Begins again before what was undone of what was distributed.
  ///
  /// - Returns: whether the log must be read again from there.
  private func startsAgain(_ tail: LogTail) -> Bool {
    let senders = state.withLock { state -> [Sender]? in
      let seen = state.undone.last?.number ?? 0
      state.undone = tail.undone
      state.note(tail.repaired)
      let place = tail.undone.filter { $0.number > seen }.map(\.places.after).min()
      guard let place, place < state.distributor.window.end else { return nil }
      return state.distributor.startAgain(at: place)
        .compactMap { state.senders.removeValue(forKey: $0) }
    }
    guard let senders else { return false }
    for sender in senders {
      sender.resume(
        returning: .failure(
          EngineError(.busy, "the log was undone while events waited", hint: "send them again")))
    }
    return true
  }

  /// How many subscribers wait.
  package var waitingCount: Int { state.withLock { $0.distributor.waitingCount } }

  /// The place from which a new subscriber continues: it gets what is distributed after it.
  ///
  /// It is read from memory. The log can be ahead of it by a commit that is about to be distributed.
  package var place: Timetoken { state.withLock { $0.distributor.window.end } }

  // MARK: Events that are not stored

  /// Gives subscribers events that are not stored, in one order with the messages of the log.
  ///
  /// They are distributed together or not at all. Only channel, payload and headers are used. It returns when they have
  /// their places: immediately, or after a commit that reserves places.
  ///
  /// - Parameter messages: events of channels of applications, at most 10,000.
  /// - Returns: the places of the events, between those of messages.
  /// - Throws: `busy` if too many events wait, and the errors of ``MessagingEngine/reservePlaces(count:)``. No subscriber
  ///   gets the events then.
  @discardableResult
  package func send(_ messages: [Message]) async throws(EngineError) -> [Timetoken] {
    if messages.isEmpty { return [] }
    let result = await withCheckedContinuation { (sender: Sender) in
      let now = engine.clockTicks
      let isDistributed: Result<Bool, EngineError> = state.withLock { state in
        do throws(EngineError) {
          if let failure = state.failure { throw failure }
          let number = state.makeNumber()
          let distribution = try state.distributor.send(messages, as: number, now: now)
          state.senders[number] = sender
          if let distribution { state.call(distribution) }
          return .success(distribution != nil)
        } catch {
          return .failure(error)
        }
      }
      switch isDistributed {
      case .success(true): makeCalls()
      // The run is the only waiter that has to look.
      case .success(false): engine.notifier.wake(in: [])
      case .failure(let error): sender.resume(returning: .failure(error))
      }
    }
    return try result.get()
  }

  private func reservePlaces() async {
    do throws(EngineError) {
      let places = try await engine.reservePlaces(count: EphemeralPlaces.reservedCount)
      state.withLock { $0.distributor.reserve(places) }
    } catch {
      let senders = state.withLock { state in
        state.distributor.failWaiting().compactMap { state.senders.removeValue(forKey: $0) }
      }
      for sender in senders { sender.resume(returning: .failure(error)) }
    }
  }

  // MARK: Subscribers

  /// Gives the handler the subscriber's events after a place: now if there are some, otherwise with the next ones.
  ///
  /// - Parameters:
  ///   - maximumCount: the most events of one answer. Default: 100.
  ///   - maximumByteCount: the most bytes of their payloads and headers; the first event is always given. Default:
  ///     1 MiB.
  @discardableResult
  package func poll(
    _ subscription: Subscription, after place: Timetoken, maximumCount: Int = 100,
    maximumByteCount: Int = 1 << 20, _ handler: @escaping Handler
  ) -> SubscriberID {
    let limits = Events.Limits(count: maximumCount, byteCount: maximumByteCount)
    let (id, answer, repairCount) = state.withLock { state in
      let id = SubscriberID(number: state.makeNumber())
      guard state.failure == nil else { return (id, Distributor.Answer?.none, 0) }
      let place = state.readingPlace(place)
      let answer = state.distributor.poll(id, subscription, after: place, limits)
      if case .events = answer { return (id, answer, 0) }
      state.handlers[id] = handler
      return (id, answer, state.repairCount)
    }
    switch answer {
    case .events(let events): handler(.success(events))
    case .wait: break
    case .readLog(let place, let known):
      Task {
        await readLog(
          for: id, subscription, after: place, known: known, limits, repairCount: repairCount)
      }
    case nil:
      if let failure = state.withLock({ $0.failure }) { handler(.failure(failure)) }
    }
    return id
  }

  /// Ends a poll without calling its handler, unless that has begun.
  package func cancel(_ id: SubscriberID) {
    state.withLock { state in
      state.handlers[id] = nil
      state.distributor.remove(id)
    }
  }

  /// Reads the log for a subscriber from before the window, until it has events or waits with the others.
  private func readLog(
    for id: SubscriberID, _ subscription: Subscription, after place: Timetoken, known: Timetoken,
    _ limits: Events.Limits, repairCount: Int
  ) async {
    var (place, known, repairCount) = (place, known, repairCount)
    do throws(EngineError) {
      while true {
        let tail = try await engine.logTail(
          after: place, in: subscription.selection, maximumCount: limits.count,
          maximumByteCount: limits.byteCount)
        let answer: Distributor.Answer? = state.withLock { state in
          // Otherwise it was cancelled, or the distribution has ended.
          guard state.handlers[id] != nil else { return nil }
          if repairCount != state.repairCount {
            repairCount = state.repairCount
            let beginning = state.readingPlace(place)
            if beginning < place { return .readLog(after: beginning, known: known) }
          }
          return state.distributor.take(tail, for: id, subscription, known: known, limits)
        }
        switch answer {
        case .events(let events): return finish(id, .success(events))
        case .readLog(let next, let nextKnown): (place, known) = (next, nextKnown)
        case .wait, nil: return
        }
      }
    } catch {
      finish(id, .failure(error))
    }
  }

  // MARK: Feeds

  /// Gives the handler the events of channels that are added, in their order.
  func openFeed(_ handler: @escaping LiveFeed.Handler) -> SubscriberID {
    state.withLock { state in
      let id = SubscriberID(number: state.makeNumber())
      guard state.failure == nil else { return id }
      state.distributor.openFeed(id)
      state.feeds[id] = handler
      return id
    }
  }

  func add(_ channel: Channel, to id: SubscriberID) {
    state.withLock { $0.distributor.add(channel, to: id) }
  }

  func remove(_ channel: Channel, from id: SubscriberID) {
    state.withLock { $0.distributor.remove(channel, from: id) }
  }

  func closeFeed(_ id: SubscriberID) {
    // Released after the state is unlocked.
    _ = state.withLock { state in
      state.distributor.closeFeed(id)
      return state.feeds.removeValue(forKey: id)
    }
  }

  // MARK: Distribution

  /// - Returns: whether places must be reserved.
  private func distribute(_ tail: LogTail) -> Bool {
    let needsReservation = state.withLock { state in
      state.call(state.distributor.take(tail))
      return state.distributor.needsReservation
    }
    makeCalls()
    return needsReservation
  }

  /// Makes a call later, on the thread that makes those of subscribers, in turn with the other applications.
  ///
  /// - Parameter application: the name of the one that the call works for. Its subscribers with short calls do not wait
  ///   for it.
  package func makeLongCall(of application: String, _ body: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      state.calls.append(body, isLong: true, of: application)
      return state.beginCalls()
    }
    if isFirst { makeCallsInTask() }
  }

  /// Makes the calls of a turn, and the others in a task; a thread that makes calls already makes these too.
  private func makeCalls() {
    if state.withLock({ $0.beginCalls() }), makeTurn() { makeCallsInTask() }
  }

  private func makeCallsInTask() {
    Task { while makeTurn() { await Task.yield() } }
  }

  /// Makes the calls of a turn.
  ///
  /// - Returns: whether there are more.
  private func makeTurn() -> Bool {
    for call in state.withLock({ $0.calls.next() }) { call() }
    return state.withLock { state in
      state.isCalling = !state.calls.isEmpty
      return state.isCalling
    }
  }

  private func finish(_ id: SubscriberID, _ result: Result<Events, EngineError>) {
    state.withLock { $0.handlers.removeValue(forKey: id) }?(result)
  }

  private func end(_ error: EngineError) {
    let (handlers, senders, feeds) = state.withLock { state in
      state.failure = error
      defer { (state.handlers, state.senders, state.feeds) = ([:], [:], [:]) }
      for id in state.handlers.keys { state.distributor.remove(id) }
      for id in state.feeds.keys { state.distributor.closeFeed(id) }
      return (state.handlers.values, state.senders.values, state.feeds)
    }
    for handler in handlers { handler(.failure(error)) }
    for sender in senders { sender.resume(returning: .failure(error)) }
    withExtendedLifetime(feeds) {}
  }
}
