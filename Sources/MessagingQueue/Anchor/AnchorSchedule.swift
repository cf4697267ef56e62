/// When an anchor is due: commits and time in, yes or no out.
package struct AnchorSchedule: Sendable, Hashable {
  /// Commits since the anchor that was recorded last.
  private(set) var commitCount = 0
  /// Commits since it was last tried.
  private var commitCountSinceAttempt = 0
  private let limit: Int

  package init(limit: Int) {
    self.limit = limit
  }

  /// Whether there is anything that the vault does not know of.
  package var hasNews: Bool { commitCount > 0 }

  /// Counts a commit; whether an anchor is due by the number of them.
  package mutating func countCommit() -> Bool {
    commitCount += 1
    commitCountSinceAttempt += 1
    return commitCountSinceAttempt == limit
  }

  /// Begins an attempt, and returns what to hand to ``succeed(_:)``.
  package mutating func begin() -> Int {
    commitCountSinceAttempt = 0
    return commitCount
  }

  /// The anchor covers what was there when the attempt began.
  package mutating func succeed(_ covered: Int) {
    commitCount -= covered
  }
}
