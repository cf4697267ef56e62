internal import DataVault

/// What a database knows of the last rollback anchor that its vault has: `docs/vaulted-database.md`,
/// "Anchor".
public enum AnchorState: Sendable, CustomStringConvertible {
  /// The database knows the anchor, or the vault has none.
  case known
  /// The database lacks the anchor: it is an older copy of itself, or has lost its last commits.
  ///
  /// `expectedCommitNumber` is the commit of the anchor, `foundCommitNumber` the database's last one; 0 where it
  /// has no tables yet.
  case missing(expectedCommitNumber: Int64, foundCommitNumber: Int64)
  /// What the database knows cannot be read: whether it is an older copy cannot be told.
  case unreadable(any Error)

  /// Compares what a database knows with the anchor of its vault.
  init(_ page: Result<AnchorPage?, any Error>, of anchor: DatabaseAnchor) {
    switch page {
    case .success(let page) where AnchorPage.page(page, holds: anchor): self = .known
    case .success(let page):
      self = .missing(
        expectedCommitNumber: anchor.commitNumber, foundCommitNumber: page?.commitNumber ?? 0)
    case .failure(let error): self = .unreadable(error)
    }
  }

  /// Whether the database lacks its vault's anchor.
  public var isMissing: Bool {
    if case .missing = self { true } else { false }
  }

  /// What the database knows, in a few words.
  public var description: String {
    switch self {
    case .known: "the database knows its vault's last anchor"
    case .missing(let expected, let found) where found < expected:
      "it ends with commit \(found), the vault has seen commit \(expected)"
    case .missing(let expected, _):
      "it does not know the vault's last anchor, of commit \(expected)"
    case .unreadable:
      "what the database knows of it cannot be read, so whether this is an older copy cannot be told"
    }
  }
}
