package import DataVault
package import GRDB

/// How a database keeps the anchors that its vault may ask it for: a part of its own tables.
package protocol AnchorStorage: Sendable {
  /// What the database knows; nil before it has tables.
  func page(in db: Database) throws -> AnchorHistory?

  /// Notes a new anchor, in a transaction that is durable on return.
  ///
  /// Old ones may be dropped, but never `kept`, which is the one that the vault has.
  ///
  /// - Returns: the number of the commit that holds it, greater than any before.
  func add(_ id: [UInt8], keeping kept: DatabaseAnchor?, in db: Database) throws -> Int64
}

/// What a database knows of its own age.
package struct AnchorHistory: Sendable, Hashable {
  /// The number of its last commit.
  package let commitNumber: Int64

  /// The last anchors, oldest first.
  package let anchors: [DatabaseAnchor]

  package init(commitNumber: Int64, anchors: [DatabaseAnchor]) {
    self.commitNumber = commitNumber
    self.anchors = anchors
  }

  /// Whether a database that knows this is the one whose vault has that anchor, or a later state of
  /// it.
  package static func page(_ page: AnchorHistory?, holds anchor: DatabaseAnchor?) -> Bool {
    guard let anchor else { return true }
    guard let page else { return false }
    return page.anchors.contains(anchor) && page.commitNumber >= anchor.commitNumber
  }
}

/// A rollback that somebody has accepted.
public struct AcceptedRollback: Sendable, Hashable {
  /// The commit that the vault knew of.
  public let expectedCommitNumber: Int64

  /// The last commit that the database has.
  public let foundCommitNumber: Int64
}

/// What a database knows of the last rollback anchor that its vault has: `docs/explanation/vaulted-database.md`,
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
  init(_ page: Result<AnchorHistory?, any Error>, of anchor: DatabaseAnchor) {
    switch page {
    case .success(let page) where AnchorHistory.page(page, holds: anchor): self = .known
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
