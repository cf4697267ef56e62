internal import GRDB
internal import Synchronization
internal import SystemPackage

/// Wakes whoever waits for messages after a commit that published some: in this process at once,
/// in others through a ``NotificationTransport``.
///
/// A wait is a continuation, no thread and no poll. One thread of its own listens to the device as
/// long as somebody waits. What no ring can tell, that a publisher was killed between its commit
/// and its ring, that thread finds by looking at the database now and then.
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
    /// Whether the thread waits without a limit, because nobody waited when it last looked.
    var isThreadAsleep = false
    var listener: (any NotificationListener)?
  }

  /// How often the thread looks at the database.
  package struct Intervals: Sendable {
    /// While it hears rings.
    ///
    /// Default: 1 second.
    package var fallbackCheck: Duration = .seconds(1)
    /// While the device refuses.
    ///
    /// Default: 250 milliseconds.
    package var polling: Duration = .milliseconds(250)

    package init() {}
  }

  let state = Mutex(State())
  /// What the transaction that this engine's only writer has open will ring for.
  let announced = Mutex(Announcement())
  let device: (any NotificationTransport)?
  let intervals: Intervals
  let probe: @Sendable () -> BellProbe?
  private let sleep: @Sendable (Duration) async throws -> Void
  package let localPublications = LocalPublications()

  /// - Parameters:
  ///   - device: nil for a notifier that is heard in this process only.
  ///   - probe: looks at the database, on a thread that may block; nil if that failed.
  ///   - sleep: ends the waits that have a limit.
  package init(
    device: (any NotificationTransport)? = nil, intervals: Intervals = Intervals(),
    probe: @escaping @Sendable () -> BellProbe? = { nil },
    sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.device = device
    self.intervals = intervals
    self.probe = probe
    self.sleep = sleep
  }

  deinit {
    state.withLock { $0.listener }?.interrupt()
  }

  /// How often it has rung: to be read before looking at the database.
  package var generation: NotificationGeneration {
    NotificationGeneration(rawValue: state.withLock { $0.count })
  }

  /// Who waits for it.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  /// Whether the engine has stopped.
  package var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Wakes who waits for one of the channels; belongs behind the commit, and never fails.
  ///
  /// - Parameter channels: nil for all: what happened concerns them, or is not known.
  package func notify(in channels: Set<Channel>? = nil) {
    wake(in: channels)
    // Who cannot be told looks by itself before long.
    try? device?.notify()
  }

  /// Ends every wait, now and later, with ``Wake/stopped``.
  package func stop() {
    let (waiters, listener) = state.withLock { state in
      state.isStopped = true
      defer { state.waiters = [:] }
      return (state.waiters, state.listener)
    }
    for waiter in waiters.values { waiter.end(.stopped) }
    listener?.interrupt()
  }

  /// Waits until it has rung more often than `count`, which may have happened already.
  ///
  /// - Parameters:
  ///   - channels: what one waits for; nil for everything. Rings of other processes wake all.
  ///   - limit: how long to wait at most, for a lease or a delay that ends; nil for ever.
  package func waitForChange(
    after count: NotificationGeneration, in channels: Set<Channel>? = nil,
    within limit: Duration? = nil
  ) async -> WaitResult {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = Waiter(channels: channels, continuation: continuation)
        if let wake = enter(waiter, id, after: count, limit: limit) {
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

  /// Puts a waiter on the list, or says why it need not wait.
  private func enter(
    _ waiter: Waiter, _ id: UInt64, after count: NotificationGeneration, limit: Duration?
  ) -> WaitResult? {
    state.withLock { state in
      if state.isStopped { return .stopped }
      // A cancellation that comes later finds the waiter on the list.
      if Task.isCancelled { return .cancelled }
      if state.count > count.rawValue { return .changed }
      if let limit, limit <= .zero { return .timedOut }
      state.waiters[id] = waiter
      return nil
    }
  }

  private func setTimer(_ limit: Duration, for id: UInt64) {
    let sleep = self.sleep
    let timer = Task { [weak self] in
      do { try await sleep(limit) } catch { return }
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

  /// Wakes who waits in this process.
  func wake(in channels: Set<Channel>?) {
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
  func isConcerned(by rung: Set<Channel>?) -> Bool {
    guard let rung, let channels else { return true }
    return !channels.isDisjoint(with: rung)
  }

  func end(_ wake: WaitResult) {
    timer?.cancel()
    continuation.resume(returning: wake)
  }
}

extension ChangeNotifier {
  /// What a transaction that is not committed yet will ring for.
  struct Announcement: Sendable {
    var channels: Set<Channel> = []
    var publications: [LocalPublications.Publication] = []
  }

  /// Has the notifier ring when the transaction commits, whoever commits it, and not if it is rolled
  /// back: ``PublicationObserver`` sees to that.
  ///
  /// It belongs into the transaction. What is rolled back to a savepoint rings all the same, which
  /// wakes for nothing and harms nobody.
  ///
  /// - Parameters:
  ///   - timetokens: of the messages that were just stored.
  ///   - previous: the greatest timetoken that was given out before them.
  ///   - channels: where they were published.
  func announce(_ timetokens: [Timetoken], after previous: Int64, in channels: Set<Channel>) {
    guard let first = timetokens.first, let last = timetokens.last else { return }
    let publication = LocalPublications.Publication(
      previous: previous, first: first.rawValue, last: last.rawValue)
    localPublications.note(publication)
    announced.withLock { announced in
      announced.channels.formUnion(channels)
      announced.publications.append(publication)
    }
  }

  /// The same for messages that were published before and can be received again.
  func announceReturn(to channel: Channel) {
    announced.withLock { _ = $0.channels.insert(channel) }
  }

  /// Rings for what was announced, now that it is committed.
  func notifyAnnounced() {
    let announcement = takeAnnounced()
    if announcement.channels.isEmpty { return }
    if !announcement.publications.isEmpty { localPublications.settle() }
    notify(in: announcement.channels)
  }

  /// Forgets what was announced, and rolled back.
  func rollBackAnnounced() {
    for publication in takeAnnounced().publications { localPublications.rollBack(publication) }
  }

  private func takeAnnounced() -> Announcement {
    announced.withLock { announced in
      defer { announced = Announcement() }
      return announced
    }
  }
}

extension ChangeNotifier {
  /// The notifier of an engine, with a file beside the database.
  package convenience init(
    of snapshots: SnapshotReader, isLockedOut: @escaping @Sendable () -> Bool
  ) {
    self.init(
      device: NotificationFile(besideDatabase: FilePath(snapshots.path)),
      probe: {
        let commitNumber = try? snapshots.read { db in
          try Int64.fetchOne(db, sql: "SELECT commit_number FROM engine")
        }
        guard let commitNumber else { return nil }
        return BellProbe(commitNumber: commitNumber, isLockedOut: isLockedOut())
      })
  }
}

/// How often a ``ChangeNotifier`` has rung: read before one looks at the database, and handed to
/// ``ChangeNotifier/waitForChange(after:in:within:)`` when nothing was found there, so that what happened in
/// between is not missed.
package struct NotificationGeneration: Sendable, Hashable, Comparable {
  let rawValue: UInt64

  package static func < (a: NotificationGeneration, b: NotificationGeneration) -> Bool {
    a.rawValue < b.rawValue
  }
}

/// Why a wait for the notifier is over.
package enum WaitResult: Sendable, Hashable {
  /// Somebody rang: look again. There may be nothing.
  case changed
  /// The time that one wanted to wait is over.
  case timedOut
  /// The engine has stopped.
  case stopped
  /// The task that waited was cancelled.
  case cancelled
}
