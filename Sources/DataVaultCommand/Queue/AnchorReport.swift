internal import VaultedDatabase

/// What the reports of `queue verify` and `queue salvage` say of the vault's rollback anchor.
struct AnchorReport: Encodable {
  /// `known`, `missing` or `unreadable`.
  let state: String
  /// The commit of the anchor, where the database lacks it.
  let expectedCommitNumber: Int64?
  /// The database's last commit, where it lacks the anchor.
  let foundCommitNumber: Int64?
  /// The line for people.
  let line: String

  private enum CodingKeys: CodingKey {
    case state, expectedCommitNumber, foundCommitNumber
  }

  init(_ anchor: AnchorState) {
    var numbers: (expected: Int64?, found: Int64?)
    switch anchor {
    case .known: state = "known"
    case .missing(let expected, let found): (state, numbers) = ("missing", (expected, found))
    case .unreadable: state = "unreadable"
    }
    (expectedCommitNumber, foundCommitNumber) = numbers
    line = "anchor     \(state): \(anchor)\n"
  }
}
