internal import Synchronization

/// Wakes callers that wait for messages, after a commit that published some.
///
/// It wakes callers in this process directly, and those in other processes through a
/// ``NotificationTransport``. A wait is a continuation: it uses no thread and does not poll. One
/// thread of the notifier listens to the transport while there is a waiter. If a publisher is
/// killed between its commit and its notification, that thread finds the change by reading the
/// database from time to time.
package final class ChangeNotifier: Sendable {
  struct Waiter {
    let channels: Set<Channel>?
    let continuation: CheckedContinuation<WaitResult, Never>
    var timer: Task<Void, Never>?
  }

  struct State {
    var count: UInt64 = 0
    var waiters: [UInt64: Waiter] = [:]
    var nextWaiter: UInt64 = 0
    var isStopped = false
    var hasThread = false
    /// Whether the thread waits without a limit, because there was no waiter when it last looked.
    var isThreadAsleep = false
    var listener: (any NotificationListener)?
    /// The state of the database for which all waiters were woken, or those whom the newest commits concern.
    var seen: DatabaseMark?
  }

  /// How often the thread reads the database.
  package struct Intervals: Sendable {
    /// While it receives notifications.
    ///
    /// Default: 1 second.
    package var fallbackCheck: Duration = .seconds(1)
    /// While the transport refuses.
    ///
    /// Default: 250 milliseconds.
    package var polling: Duration = .milliseconds(250)

    package init() {}
  }

  let state = Mutex(State())
  /// The announcement of the open transaction of this engine's only writer.
  let announced = Mutex(Announcement())
  let transport: (any NotificationTransport)?
  let intervals: Intervals
  let probe: @Sendable () -> DatabaseMark?
  package let localPublications = LocalPublications()

  /// - Parameters:
  ///   - transport: nil for a notifier of this process only.
  ///   - probe: reads the database, on a thread that can block; nil if that failed.
  package init(
    transport: (any NotificationTransport)? = nil, intervals: Intervals = Intervals(),
    probe: @escaping @Sendable () -> DatabaseMark? = { nil }
  ) {
    self.transport = transport
    self.intervals = intervals
    self.probe = probe
  }

  deinit {
    state.withLock { $0.listener }?.interrupt()
  }

  /// How often the notifier has woken waiters; read it before you read the database.
  package var generation: NotificationGeneration {
    NotificationGeneration(rawValue: state.withLock { $0.count })
  }

  /// How many callers wait.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  /// Whether the engine has stopped.
  package var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Wakes callers that wait for one of the channels; call it after the commit, it never fails.
  ///
  /// - Parameter channels: nil for all, if the change concerns all or the channels are unknown.
  package func notify(in channels: Set<Channel>? = nil) {
    wake(in: channels)
    // A process that gets no notification reads the database soon by itself.
    try? transport?.notify()
  }

  /// Ends every wait, now and later, with ``WaitResult/stopped``.
  package func stop() {
    let (waiters, listener) = state.withLock { state in
      state.isStopped = true
      defer { state.waiters = [:] }
      return (state.waiters, state.listener)
    }
    for waiter in waiters.values { waiter.end(.stopped) }
    listener?.interrupt()
  }

  /// Waits until ``generation`` is greater than `seen`, which can already be true.
  ///
  /// - Parameters:
  ///   - channels: the channels to wait for; nil for all. Notifications of other processes wake all
  ///     waiters.
  ///   - limit: how long to wait at most, for a lease or a delay that ends; nil for ever.
  package func waitForChange(
    after seen: NotificationGeneration, in channels: Set<Channel>? = nil,
    within limit: Duration? = nil
  ) async -> WaitResult {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = Waiter(channels: channels, continuation: continuation)
        if let wake = enter(waiter, id, after: seen, limit: limit) {
          waiter.end(wake)
        } else {
          ensureListening()
          if let limit { setTimer(limit, for: id) }
        }
      }
    } onCancel: {
      self.end(id, .cancelled)
    }
  }

  /// Adds a waiter, or returns why it need not wait.
  private func enter(
    _ waiter: Waiter, _ id: UInt64, after seen: NotificationGeneration, limit: Duration?
  ) -> WaitResult? {
    state.withLock { state in
      if state.isStopped { return .stopped }
      // A cancellation that comes later finds the waiter on the list.
      if Task.isCancelled { return .cancelled }
      if state.count > seen.rawValue { return .changed }
      if let limit, limit <= .zero { return .timedOut }
      state.waiters[id] = waiter
      return nil
    }
  }

  private func setTimer(_ limit: Duration, for id: UInt64) {
    let timer = Task { [weak self] in
      do { try await Task.sleep(for: limit) } catch { return }
      self?.end(id, .timedOut)
    }
    let isKept = state.withLock { state in
      state.waiters[id]?.timer = timer
      return state.waiters[id] != nil
    }
    if !isKept { timer.cancel() }
  }

  private func end(_ id: UInt64, _ wake: WaitResult) {
    state.withLock { $0.waiters.removeValue(forKey: id) }?.end(wake)
  }

  /// Wakes the waiters of this process.
  ///
  /// - Parameter channels: nil for all waiters; none for those alone that wait for all channels.
  package func wake(in channels: Set<Channel>?) {
    let woken = state.withLock { state in
      state.count += 1
      let woken = state.waiters.filter { $0.value.isConcerned(by: channels) }
      for id in woken.keys { state.waiters[id] = nil }
      return woken
    }
    for waiter in woken.values { waiter.end(.changed) }
  }
}

extension ChangeNotifier.Waiter {
  func isConcerned(by changed: Set<Channel>?) -> Bool {
    guard let changed, let channels else { return true }
    return !channels.isDisjoint(with: changed)
  }

  func end(_ wake: WaitResult) {
    timer?.cancel()
    continuation.resume(returning: wake)
  }
}

/// Counts how often a ``ChangeNotifier`` has woken waiters.
///
/// Read it before you read the database. If nothing is found there, pass it to
/// ``ChangeNotifier/waitForChange(after:in:within:)``, so that no change in between is missed.
package struct NotificationGeneration: Sendable, Hashable, Comparable {
  let rawValue: UInt64

  package static func < (a: NotificationGeneration, b: NotificationGeneration) -> Bool {
    a.rawValue < b.rawValue
  }
}

/// Why a wait has ended.
package enum WaitResult: Sendable, Hashable {
  /// Something changed: look again. There can be nothing.
  case changed
  /// The time limit has passed.
  case timedOut
  /// The engine has stopped.
  case stopped
  /// The task that waited was cancelled.
  case cancelled
}
