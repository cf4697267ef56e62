internal import Logging
internal import Synchronization

/// Records the engine's rollback anchor after a number of commits, or a time after the first commit
/// that the last anchor does not cover.
///
/// If the vault is locked or its store cannot be written, the engine continues without a new
/// anchor. The recorder tries again after as many commits or as much time.
final class AnchorRecorder: Sendable {
  private struct State {
    var schedule: AnchorSchedule
    var timer: Task<Void, Never>?
  }

  private let state: Mutex<State>
  private let interval: Duration
  private let logger: Logger
  private let record: @Sendable () async throws -> Void

  init(
    commitCount: Int, interval: Duration, logger: Logger,
    record: @escaping @Sendable () async throws -> Void
  ) {
    state = Mutex(State(schedule: AnchorSchedule(limit: commitCount)))
    self.interval = interval
    self.logger = logger
    self.record = record
  }

  /// Whether there are commits that no anchor in the vault covers.
  var hasNews: Bool { state.withLock { $0.schedule.hasNews } }

  /// Counts a commit; never waits.
  func didCommit() {
    let isDue = state.withLock { state in
      let isDue = state.schedule.countCommit()
      if !isDue, state.timer == nil { state.timer = makeTimer() }
      return isDue
    }
    if isDue { Task.detached { await self.recordNow() } }
  }

  /// Records an anchor if there are new commits; returns when it is in the vault or has failed.
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
    Task.detached { [weak self, interval] in
      do { try await Task.sleep(for: interval, clock: .continuous) } catch { return }
      guard let self else { return }
      // The timer has done its work: cancelling it now would cancel the recording that follows.
      self.state.withLock { $0.timer = nil }
      await self.recordNow()
    }
  }

  deinit {
    state.withLock { $0.timer }?.cancel()
  }
}

/// When an anchor is due: commits in, yes or no out.
package struct AnchorSchedule: Sendable, Hashable {
  /// Commits of this engine.
  private var commitCount = 0
  /// How many of them the last anchor in the vault covers.
  private var coveredCount = 0
  /// How many there were when the last attempt began.
  private var attemptedCount = 0
  private let limit: Int

  /// - Parameter limit: commits after which one is due.
  package init(limit: Int) {
    self.limit = limit
  }

  /// Whether there are commits that the last anchor does not cover.
  package var hasNews: Bool { commitCount > coveredCount }

  /// Counts a commit, and returns whether an anchor is due by their number.
  package mutating func countCommit() -> Bool {
    commitCount += 1
    return commitCount - attemptedCount == limit
  }

  /// Begins an attempt, and returns the number to pass to ``succeed(_:)``.
  package mutating func begin() -> Int {
    attemptedCount = commitCount
    return commitCount
  }

  /// Notes the commits that an anchor covers, which came before its attempt; attempts can overlap.
  package mutating func succeed(_ covered: Int) {
    coveredCount = max(coveredCount, covered)
  }
}
