package import DataVault
package import GRDB

/// How a database keeps the anchors that its vault may ask it for: a part of its own tables.
package protocol AnchorLedger: Sendable {
  /// What the database knows; nil before it has tables.
  func page(in db: Database) throws -> AnchorPage?

  /// Notes a new anchor, in a transaction that is durable on return.
  ///
  /// Old ones may be dropped, but never `kept`, which is the one that the vault has.
  ///
  /// - Returns: the number of the commit that holds it, greater than any before.
  func add(_ id: [UInt8], keeping kept: DatabaseAnchor?, in db: Database) throws -> Int64
}

/// What a database knows of its own age.
package struct AnchorPage: Sendable, Hashable {
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
  package static func page(_ page: AnchorPage?, holds anchor: DatabaseAnchor?) -> Bool {
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
