internal import AccessControl
internal import Foundation
internal import GRDB

/// The row of an application, with its secret key as it is stored.
struct ApplicationRow: Sendable {
  let record: ApplicationRecord
  let sealedSecretKey: [UInt8]
  /// Its grants and revoked tokens.
  let grantCount: Int
  /// Its channel groups.
  let groupCount: Int
  /// The channels of these groups.
  let memberCount: Int

  private static let columns = """
    SELECT id, name, publish_key, subscribe_key, secret_key, is_open, created, maximum_age,
      maximum_bytes, grant_count, group_count, member_count FROM application
    """

  /// The row with an id; nil if there is none.
  static func find(_ id: ApplicationID, _ db: Database) throws -> ApplicationRow? {
    try db.row("\(columns) WHERE id = ?", id.number).map(ApplicationRow.init)
  }

  /// The row with a name; nil if there is none.
  static func find(named name: String, _ db: Database) throws -> ApplicationRow? {
    try db.row("\(columns) WHERE name = ?", name).map(ApplicationRow.init)
  }

  /// The row with an id.
  ///
  /// - Throws: `unknownApplication`.
  static func require(_ id: ApplicationID, _ db: Database) throws -> ApplicationRow {
    guard let row = try find(id, db) else { throw ApplicationStoreError.unknownApplication(id) }
    return row
  }

  /// All rows, by their names.
  static func all(_ db: Database) throws -> [ApplicationRow] {
    var rows: [ApplicationRow] = []
    let cursor = try db.rows("\(columns) ORDER BY name")
    while let row = try cursor.next() { rows.append(try ApplicationRow(row)) }
    return rows
  }

  private init(_ row: Row) throws {
    let name: String = row[1]
    guard let id = try? ApplicationID(row[0]),
      let retention = try? ApplicationRetention(
        maximumMinutes: row[7], maximumByteCount: row[8])
    else { throw ApplicationStoreError.damaged("the row", of: name) }
    record = ApplicationRecord(
      id: id, name: name, publishKey: row[2], subscribeKey: row[3], isOpen: row[5],
      created: Date(ticks: row[6]), retention: retention)
    sealedSecretKey = try row.bytes(4)
    grantCount = row[9]
    groupCount = row[10]
    memberCount = row[11]
  }
}
