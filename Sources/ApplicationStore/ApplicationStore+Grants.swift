package import AccessControl
package import Foundation
internal import GRDB

/// Grants and revoked tokens.
extension ApplicationStore {
  /// Stores grants, all or none; each replaces the one for its holder and scope.
  ///
  /// A grant without rights removes that one. On return the grants are on the disk.
  ///
  /// - Throws: `unknownApplication`, `tooManyGrants`, `newerVersion`, `engine`.
  package func put(_ grants: [Grant]) async throws(ApplicationStoreError) {
    if grants.isEmpty { return }
    try await change("storing grants") { [self] db, changes in
      try removeEnded(atMost: Self.removedAtOnce + grants.count, db)
      for (id, grants) in Dictionary(grouping: grants, by: \.key.application) {
        let row = try ApplicationRow.require(id, db)
        var gain = 0
        for grant in grants {
          if !grant.rights.isEmpty {
            gain += try Self.store(grant, db) ? 1 : 0
          } else if try Self.delete(grant.key, db) {
            gain -= 1
          } else {
            continue
          }
          changes.append(.grant(grant.key))
        }
        try addToGrantCount(gain, of: row, db)
      }
    }
  }

  /// Removes a grant.
  ///
  /// - Throws: `unknownApplication`, `unknownGrant`, `newerVersion`, `engine`.
  package func removeGrant(
    _ grantID: GrantID, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    let keys = try await read("looking for a grant") { db in
      _ = try ApplicationRow.require(id, db)
      return try Self.grants(of: id, db).map(\.key).filter { try GrantID($0) == grantID }
    }
    try await change("removing a grant") { [self] db, changes in
      for key in keys where try Self.delete(key, db) { changes.append(.grant(key)) }
      guard !changes.isEmpty else {
        throw ApplicationStoreError(
          .unknownGrant, "application '\(id)' has no grant '\(grantID)'",
          hint: "datavaultd grant list shows all grants")
      }
      try addToGrantCount(-changes.count, of: ApplicationRow.require(id, db), db)
    }
  }

  /// The grants of an application that have not ended, by holder and scope.
  ///
  /// - Throws: `unknownApplication`, `damaged`, `newerVersion`, `engine`.
  package func grants(of id: ApplicationID) async throws(ApplicationStoreError) -> [Grant] {
    let now = now()
    return try await read("listing grants") { db in
      _ = try ApplicationRow.require(id, db)
      return try Self.grants(of: id, db).filter { $0.end.map { now < $0 } ?? true }
    }
  }

  /// Revokes a token; a token that is already revoked stays so.
  ///
  /// On return the revocation is on the disk.
  ///
  /// - Parameters:
  ///   - end: when the token ends by itself.
  /// - Throws: `unknownApplication`, `tooManyGrants`, `newerVersion`, `engine`.
  package func revoke(
    _ token: TokenDigest, of id: ApplicationID, until end: Date
  ) async throws(ApplicationStoreError) {
    try await change("revoking a token") { [self] db, changes in
      try removeEnded(atMost: Self.removedAtOnce, db)
      let row = try ApplicationRow.require(id, db)
      try db.run(
        "INSERT OR IGNORE INTO application_revocation VALUES (?, ?, ?)", id.number,
        Data(token.bytes), end.ticks)
      guard db.changesCount > 0 else { return }
      try addToGrantCount(1, of: row, db)
      changes = [.revocation(token, of: id)]
    }
  }

  /// Removes the rows of grants and revoked tokens that have ended, which allow nothing any more.
  ///
  /// Every call that stores a grant removes a few of them. A server calls this from time to time.
  ///
  /// - Returns: how many rows it removed.
  /// - Throws: `newerVersion`, `engine`.
  @discardableResult
  package func removeEnded() async throws(ApplicationStoreError) -> Int {
    var total = 0
    while true {
      let count = try await change("removing grants that have ended") { [self] db, _ in
        try removeEnded(atMost: 1000, db)
      }
      total += count
      if count == 0 { return total }
    }
  }

  // MARK: - Rows

  /// Rows that a call removes on its way.
  private static let removedAtOnce = 64

  /// The grants of an application, by holder and scope, those that have ended included.
  static func grants(of id: ApplicationID, _ db: Database) throws -> [Grant] {
    var grants: [Grant] = []
    let rows = try db.rows(
      """
      SELECT holder, scope, rights, start, minutes FROM application_grant WHERE application_id = ?
      """, id.number)
    while let row = try rows.next() { grants.append(try grant(row, of: id)) }
    return grants
  }

  /// The grant with a key; nil if there is none.
  static func grant(_ key: Grant.Key, _ db: Database) throws -> Grant? {
    try db.row(
      """
      SELECT holder, scope, rights, start, minutes FROM application_grant
      WHERE application_id = ? AND holder = ? AND scope = ?
      """, key.application.number, Data(key.holder.stored), Data(key.scope.stored)
    ).map { try grant($0, of: key.application) }
  }

  private static func grant(_ row: Row, of id: ApplicationID) throws -> Grant {
    let bits: Int64 = row[2]
    guard let holder = GrantHolder(stored: try row.bytes(0)),
      let scope = Scope(stored: try row.bytes(1)), let rights = UInt16(exactly: bits),
      let grant = try? Grant(
        Rights(rawValue: rights), on: Grant.Key(scope, of: id, holder: holder), minutes: row[4],
        start: Date(ticks: row[3]))
    else { throw ApplicationStoreError.damaged("a grant", of: id) }
    return grant
  }

  /// Stores a grant, and returns whether that is a row more.
  private static func store(_ grant: Grant, _ db: Database) throws -> Bool {
    let key = grant.key
    let (id, holder, scope) = (key.application.number, key.holder.stored, key.scope.stored)
    let (rights, start) = (Int(grant.rights.rawValue), grant.start.ticks)
    try db.run(
      """
      UPDATE application_grant SET rights = ?, start = ?, minutes = ?
      WHERE application_id = ? AND holder = ? AND scope = ?
      """, rights, start, grant.minutes, id, Data(holder), Data(scope))
    if db.changesCount > 0 { return false }
    try db.run(
      "INSERT INTO application_grant VALUES (?, ?, ?, ?, ?, ?)", id, Data(holder), Data(scope),
      rights, start, grant.minutes)
    return true
  }

  /// Whether there was such a grant.
  private static func delete(_ key: Grant.Key, _ db: Database) throws -> Bool {
    try db.run(
      "DELETE FROM application_grant WHERE application_id = ? AND holder = ? AND scope = ?",
      key.application.number, Data(key.holder.stored), Data(key.scope.stored))
    return db.changesCount > 0
  }

  /// Counts the rows of an application, and refuses more than the limits allow.
  private func addToGrantCount(_ gain: Int, of row: ApplicationRow, _ db: Database) throws {
    let id = row.record.id.number
    try db.run("UPDATE application SET grant_count = grant_count + ? WHERE id = ?", gain, id)
    func isAboveLimit() throws -> Bool {
      let count = try db.number("SELECT grant_count FROM application WHERE id = ?", id) ?? 0
      let total = try db.number("SELECT sum(grant_count) FROM application") ?? 0
      return count > limits.grantCount || total > limits.totalGrantCount
    }
    guard gain > 0, try isAboveLimit() else { return }
    while try removeEnded(atMost: 1000, db) > 0 {}
    guard try isAboveLimit() else { return }
    throw ApplicationStoreError(
      .tooManyGrants,
      "application '\(row.record.name)' would have more than \(limits.grantCount) grants and "
        + "revoked tokens, or all together more than \(limits.totalGrantCount)",
      hint: "remove grants, or use patterns, shorter lifetimes or tokens")
  }

  /// Removes rows that have ended, those that ended first, and returns how many.
  ///
  /// Readers compare the ends with their own clock, so this is no change.
  @discardableResult
  private func removeEnded(atMost count: Int, _ db: Database) throws -> Int {
    let now = now().ticks
    let statements = [
      """
      DELETE FROM application_grant WHERE (application_id, holder, scope) IN
        (SELECT application_id, holder, scope FROM application_grant
         WHERE minutes > 0 AND start + minutes * 600000000 <= ?1
         ORDER BY start + minutes * 600000000 LIMIT ?2)
      RETURNING application_id
      """,
      """
      DELETE FROM application_revocation WHERE (application_id, digest) IN
        (SELECT application_id, digest FROM application_revocation
         WHERE until <= ?1 ORDER BY until LIMIT ?2)
      RETURNING application_id
      """,
    ]
    var total = 0
    for statement in statements {
      let ids = try Int64.fetchAll(db.cachedStatement(sql: statement), arguments: [now, count])
      for (id, ids) in Dictionary(grouping: ids, by: \.self) {
        try db.run(
          "UPDATE application SET grant_count = grant_count - ? WHERE id = ?", ids.count, id)
      }
      total += ids.count
    }
    return total
  }
}
