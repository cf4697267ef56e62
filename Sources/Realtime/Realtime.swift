package import MessagingQueue
internal import Synchronization

/// Distributes the log to live subscribers: one read of it after each commit, however many subscribers there are.
///
/// A subscriber whose place is near the end of the log is served from memory. One that comes from further back reads
/// the log once, and then joins the others. A message is neither lost nor repeated for a subscriber that continues from
/// the place it was given.
package final class Realtime: Sendable {
  /// Gets the end of a poll, on any thread and exactly once, unless the poll is cancelled.
  ///
  /// It must not block.
  package typealias Handler = @Sendable (Result<Events, EngineError>) -> Void

  private struct State {
    var distributor: Distributor
    /// Subscribers that wait or whose log is being read.
    var handlers: [SubscriberID: Handler] = [:]
    var nextNumber: UInt64 = 0
    /// Why the distribution has ended.
    var failure: EngineError?
  }

  private let engine: MessagingEngine
  private let state: Mutex<State>

  /// Begins at the end of the log.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package init(_ engine: MessagingEngine) async throws(EngineError) {
    self.engine = engine
    state = Mutex(State(distributor: Distributor(EventWindow(at: try await engine.logEnd()))))
  }

  /// Distributes until the task is cancelled or the engine stops.
  ///
  /// All polls then end with `stopped`, or with the error.
  ///
  /// - Throws: the error of reading the log.
  package func run() async throws(EngineError) {
    do throws(EngineError) {
      while !Task.isCancelled {
        // Read before the log, so that a commit between the two ends the wait.
        let generation = engine.notifier.generation
        let place = state.withLock { $0.distributor.window.end }
        let tail = try await engine.logTail(after: place)
        distribute(tail)
        guard tail.isAtEnd else { continue }
        _ = await engine.notifier.waitForChange(after: generation)
      }
      end(EngineError(.stopped, "the distribution of messages has ended", hint: "ask again"))
    } catch {
      end(error)
      throw error
    }
  }

  /// How many subscribers wait.
  package var waitingCount: Int { state.withLock { $0.distributor.waitingCount } }

  /// The end of the log: a new subscriber gets what is committed after it.
  ///
  /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`.
  package func end() async throws(EngineError) -> Timetoken { try await engine.logEnd() }

  /// Gives the handler the subscriber's messages after a place: now if there are some, otherwise when the next ones
  /// are committed.
  ///
  /// - Parameter maximumCount: the most messages of one answer.
  @discardableResult
  package func poll(
    _ subscription: Subscription, after place: Timetoken, maximumCount: Int = 100,
    _ handler: @escaping Handler
  ) -> SubscriberID {
    let id = state.withLock { state in
      state.nextNumber += 1
      let id = SubscriberID(number: state.nextNumber)
      state.handlers[id] = handler
      return id
    }
    poll(id, subscription, after: place, maximumCount: maximumCount)
    return id
  }

  /// Ends a poll without calling its handler, unless that has begun.
  package func cancel(_ id: SubscriberID) {
    state.withLock { state in
      state.handlers[id] = nil
      state.distributor.remove(id)
    }
  }

  private func poll(
    _ id: SubscriberID, _ subscription: Subscription, after place: Timetoken, maximumCount: Int
  ) {
    let answer: Distributor.Answer? = state.withLock { state in
      // Cancelled, or the distribution has ended.
      guard state.handlers[id] != nil, state.failure == nil else { return nil }
      return state.distributor.poll(id, subscription, after: place, maximumCount: maximumCount)
    }
    switch answer {
    case .wait: break
    case .events(let events): finish(id, .success(events))
    case .readLog:
      Task {
        await readLog(id, subscription, after: place, maximumCount: maximumCount)
      }
    case nil:
      if let failure = state.withLock({ $0.failure }) { finish(id, .failure(failure)) }
    }
  }

  private func readLog(
    _ id: SubscriberID, _ subscription: Subscription, after place: Timetoken, maximumCount: Int
  ) async {
    do throws(EngineError) {
      let tail = try await engine.logTail(
        after: place, in: subscription.selection, maximumCount: maximumCount)
      if tail.messages.isEmpty {
        return poll(id, subscription, after: tail.end, maximumCount: maximumCount)
      }
      var events = Events(end: tail.end)
      for message in tail.messages {
        _ = events.append(message, for: subscription, maximumCount: maximumCount)
      }
      finish(id, .success(events))
    } catch {
      finish(id, .failure(error))
    }
  }

  private func distribute(_ tail: LogTail) {
    let woken = state.withLock { state in
      state.distributor.append(tail).compactMap { woken in
        state.handlers.removeValue(forKey: woken.id).map { ($0, woken.events) }
      }
    }
    for (handler, events) in woken { handler(.success(events)) }
  }

  private func finish(_ id: SubscriberID, _ result: Result<Events, EngineError>) {
    state.withLock { $0.handlers.removeValue(forKey: id) }?(result)
  }

  private func end(_ error: EngineError) {
    let handlers = state.withLock { state in
      state.failure = error
      defer { state.handlers = [:] }
      for id in state.handlers.keys { state.distributor.remove(id) }
      return state.handlers.values
    }
    for handler in handlers { handler(.failure(error)) }
  }
}
