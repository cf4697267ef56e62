public import DataVault
package import GRDB
public import VaultedDatabase

/// Stores the anchors of the engine's database in its row: 24 bytes each, the commit number and the
/// id.
package struct EngineAnchorStorage: AnchorStorage {
  /// How many anchors the row keeps, the latest ones.
  static let maximumAnchorCount = 16

  static let entryByteCount = 8 + DatabaseAnchor.idByteCount

  package init() {}

  package func page(in db: Database) throws -> AnchorHistory? {
    try translatingErrors(during: "looking for the rollback anchor") {
      try EngineSchema.requireNoNewerVersion(db)
      guard try db.tableExists("engine") else { return nil }
      let row = try Row.fetchOne(db, sql: "SELECT commit_number, anchors FROM engine")
      guard let row else { throw EngineError.engineRowMissing }
      return AnchorHistory(commitNumber: row[0], anchors: try Self.anchors(in: row.bytes(at: 1)))
    }
  }

  package func add(
    _ id: [UInt8], keeping kept: DatabaseAnchor?, in db: Database
  ) throws -> Int64 {
    try translatingErrors(during: "recording the rollback anchor") {
      try db.inImmediateTransaction { try addInTransaction(id, keeping: kept, in: db) }
    }
  }

  private func addInTransaction(
    _ id: [UInt8], keeping kept: DatabaseAnchor?, in db: Database
  ) throws -> Int64 {
    // A rollback to a copy from before the tables existed can be accepted too.
    try EngineSchema.makeTables(db)
    guard let page = try page(in: db) else { throw EngineError.engineRowMissing }
    let anchor = DatabaseAnchor(
      id: id, commitNumber: try EngineError.following(page.commitNumber, "commit"))
    var anchors = page.anchors
    while anchors.count >= Self.maximumAnchorCount,
      let index = anchors.firstIndex(where: { $0 != kept })
    {
      anchors.remove(at: index)
    }
    anchors.append(anchor)
    try db.run("UPDATE engine SET anchors = ?", Self.bytes(of: anchors))
    try EngineDatabase.countCommit(db)
    return anchor.commitNumber
  }

  private static func bytes(of anchors: [DatabaseAnchor]) -> [UInt8] {
    anchors.flatMap { anchor in
      stride(from: 56, through: 0, by: -8).map {
        UInt8(truncatingIfNeeded: anchor.commitNumber >> $0)
      } + anchor.id
    }
  }

  private static func anchors(in bytes: [UInt8]) throws -> [DatabaseAnchor] {
    guard bytes.count.isMultiple(of: entryByteCount) else { throw EngineError.engineRowMissing }
    return stride(from: 0, to: bytes.count, by: entryByteCount).map { start in
      let number = bytes[start..<start + 8].reduce(Int64(0)) { $0 << 8 | Int64($1) }
      return DatabaseAnchor(
        id: Array(bytes[start + 8..<start + entryByteCount]), commitNumber: number)
    }
  }
}

extension MessagingEngine {
  /// Accepts messages that a start refuses as `rolledBack`: an older copy, or a database that has
  /// lost its last commits.
  ///
  /// The messages that the copy lacks are lost. Messages that were acknowledged after the copy was
  /// made can be delivered again. Durable on return.
  ///
  /// - Parameter vault: the messaging vault of the home, unlocked.
  /// - Returns: how far the copy was behind; nil if there was nothing to accept, and nothing was
  ///   changed.
  /// - Throws: as ``start(_:vault:configuration:)``.
  @discardableResult
  public static func acceptRollback(
    _ home: DataVaultHome, vault: Vault
  ) async throws(EngineError) -> AcceptedRollback? {
    do {
      return try await DatabaseCoordinator(home: home).acceptRollback(
        of: vault, EngineAnchorStorage())
    } catch {
      throw EngineError(starting: error)
    }
  }
}
