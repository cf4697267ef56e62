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
