internal import Logging
internal import Synchronization

/// Records the engine's rollback anchor now and then: after so many commits, or so long after the
/// first that it does not cover.
///
/// An anchor that cannot be recorded, as the vault is locked or its store cannot be written, is lived
/// without: the next is tried after as many commits or as much time again.
final class AnchorRecorder: Sendable {
  private struct State {
    var schedule: AnchorSchedule
    var timer: Task<Void, Never>?
  }

  private let state: Mutex<State>
  private let interval: Duration
  private let logger: Logger
  private let record: @Sendable () async throws -> Void
  private let sleep: @Sendable (Duration) async throws -> Void

  init(
    commitCount: Int, interval: Duration, logger: Logger,
    sleep: @escaping @Sendable (Duration) async throws -> Void = {
      try await Task.sleep(for: $0, clock: .continuous)
    },
    record: @escaping @Sendable () async throws -> Void
  ) {
    state = Mutex(State(schedule: AnchorSchedule(limit: commitCount)))
    self.interval = interval
    self.logger = logger
    self.sleep = sleep
    self.record = record
  }

  /// Counts a commit; never waits.
  func didCommit() {
    let isDue = state.withLock { state in
      let isDue = state.schedule.countCommit()
      if !isDue, state.timer == nil { state.timer = makeTimer() }
      return isDue
    }
    if isDue { Task.detached { await self.recordNow() } }
  }

  /// Records one if there is anything new, and returns when it is in the vault, or cannot be.
  func recordNow() async {
    let covered = state.withLock { state -> Int? in
      guard state.schedule.hasNews else { return nil }
      state.timer?.cancel()
      state.timer = nil
      return state.schedule.begin()
    }
    guard let covered else { return }
    do {
      try await record()
      state.withLock { $0.schedule.succeed(covered) }
      logger.debug("recorded the rollback anchor")
    } catch {
      logger.debug("the rollback anchor was not recorded: \(error)")
    }
  }

  private func makeTimer() -> Task<Void, Never> {
    Task.detached { [weak self, sleep, interval] in
      do { try await sleep(interval) } catch { return }
      await self?.timeIsOver()
    }
  }

  private func timeIsOver() async {
    // It has done its work: cancelling it now would cancel what it is about to do.
    state.withLock { $0.timer = nil }
    await recordNow()
  }

  deinit {
    state.withLock { $0.timer }?.cancel()
  }
}

/// When an anchor is due: commits in, yes or no out.
package struct AnchorSchedule: Sendable, Hashable {
  /// Commits of this engine.
  private var commitCount = 0
  /// How many of them an anchor covers that is in the vault.
  private var coveredCount = 0
  /// How many there were when the last attempt began.
  private var attemptedCount = 0
  private let limit: Int

  /// - Parameter limit: commits after which one is due.
  package init(limit: Int) {
    self.limit = limit
  }

  /// Whether there is anything that the vault does not know of.
  package var hasNews: Bool { commitCount > coveredCount }

  /// Counts a commit; whether an anchor is due by the number of them.
  package mutating func countCommit() -> Bool {
    commitCount += 1
    return commitCount - attemptedCount == limit
  }

  /// Begins an attempt, and returns what to hand to ``succeed(_:)``.
  package mutating func begin() -> Int {
    attemptedCount = commitCount
    return commitCount
  }

  /// The anchor covers what was there when its attempt began; attempts may overlap.
  package mutating func succeed(_ covered: Int) {
    coveredCount = max(coveredCount, covered)
  }
}
