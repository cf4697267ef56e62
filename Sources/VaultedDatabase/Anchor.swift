package import DataVault
package import GRDB

/// Stores a database's anchors in its own tables.
package protocol AnchorStorage: Sendable {
  /// The database's anchors; nil before it has tables.
  func page(in db: Database) throws -> AnchorHistory?

  /// Adds a new anchor, in a transaction that is durable on return.
  ///
  /// It can drop old anchors, but never `kept`, which is the vault's.
  ///
  /// - Returns: the number of the commit that has the anchor, greater than any before.
  func add(_ id: [UInt8], keeping kept: DatabaseAnchor?, in db: Database) throws -> Int64
}

/// The last commit and the anchors of a database.
package struct AnchorHistory: Sendable, Hashable {
  /// The number of its last commit.
  package let commitNumber: Int64

  /// The last anchors, oldest first.
  package let anchors: [DatabaseAnchor]

  package init(commitNumber: Int64, anchors: [DatabaseAnchor]) {
    self.commitNumber = commitNumber
    self.anchors = anchors
  }

  /// Whether a database with this history has the vault's anchor, so that it is the vault's
  /// database or a later state of it.
  package static func page(_ page: AnchorHistory?, holds anchor: DatabaseAnchor?) -> Bool {
    guard let anchor else { return true }
    guard let page else { return false }
    return page.anchors.contains(anchor) && page.commitNumber >= anchor.commitNumber
  }
}

/// A rollback that the caller has accepted.
public struct AcceptedRollback: Sendable, Hashable {
  /// The number of the last commit that the vault knows.
  public let expectedCommitNumber: Int64

  /// The number of the database's last commit.
  public let foundCommitNumber: Int64

  /// As ``VaultedDatabase/discardedLogFrameCount``.
  public let discardedLogFrameCount: Int
}

/// Whether a database has its vault's last rollback anchor: `docs/explanation/vaulted-database.md`, "Anchor".
public enum AnchorState: Sendable, CustomStringConvertible {
  /// The database has the anchor, or the vault has none.
  case known
  /// The database lacks the anchor: it is an older copy or has lost its last commits.
  ///
  /// `expectedCommitNumber` is the commit of the anchor, `foundCommitNumber` the database's last
  /// one, or 0 if it has no tables yet.
  case missing(expectedCommitNumber: Int64, foundCommitNumber: Int64)
  /// The database's anchors cannot be read, so it is unknown whether it is an older copy.
  case unreadable(any Error)

  /// Compares a database's anchors with its vault's.
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

  /// The state, in a few words.
  public var description: String {
    switch self {
    case .known: "the database lacks no anchor of its vault"
    case .missing(let expected, let found) where found < expected:
      "it ends with commit \(found), the vault has seen commit \(expected)"
    case .missing(let expected, _):
      "it lacks the vault's last anchor, of commit \(expected)"
    case .unreadable:
      "its anchors cannot be read, so it is unknown whether this is an older copy"
    }
  }
}
