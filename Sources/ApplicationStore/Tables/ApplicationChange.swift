internal import AccessControl
internal import Foundation
internal import GRDB

/// What a transaction changed, as a row of `application_change`.
enum ApplicationChange: Sendable, Hashable {
  case application(ApplicationID)
  case grant(Grant.Key)
  case revocation(TokenDigest, of: ApplicationID)
  case group(GroupName, of: ApplicationID)
  case user(Name, of: ApplicationID)
  case webhooks(of: ApplicationID)

  /// Inserts rows with the next generations, and removes those that are too old.
  ///
  /// - Parameter keptCount: how many rows are kept.
  static func insert(
    _ changes: some Sequence<ApplicationChange>, keeping keptCount: Int, _ db: Database
  ) throws {
    for change in changes {
      let (kind, id, item, scope) = change.columns
      try db.run(
        "INSERT INTO application_change (kind, application_id, item, scope) VALUES (?, ?, ?, ?)",
        kind, id.number, item.map { Data($0) }, scope.map { Data($0) })
    }
    let newest = try newestGeneration(db)
    try db.run("DELETE FROM application_change WHERE generation <= ?", newest - Int64(keptCount))
  }

  /// The generation of the newest change; 0 if there was none.
  static func newestGeneration(_ db: Database) throws -> Int64 {
    try db.number("SELECT max(generation) FROM application_change") ?? 0
  }

  /// The changes after a generation, each once; nil if some of them are gone.
  static func all(after generation: Int64, _ db: Database) throws -> Set<ApplicationChange>? {
    let newest = try newestGeneration(db)
    if newest == generation { return [] }
    guard newest > generation else { return nil }
    var changes: Set<ApplicationChange> = []
    var rowCount: Int64 = 0
    let rows = try db.rows(
      """
      SELECT kind, application_id, item, scope FROM application_change WHERE generation > ?
      """, generation)
    while let row = try rows.next() {
      rowCount += 1
      changes.insert(try ApplicationChange(row))
    }
    return rowCount == newest - generation ? changes : nil
  }

  private var columns: (kind: Int, id: ApplicationID, item: [UInt8]?, scope: [UInt8]?) {
    switch self {
    case .application(let id): (1, id, nil, nil)
    case .grant(let key): (2, key.application, key.holder.stored, key.scope.stored)
    case .revocation(let digest, let id): (3, id, digest.bytes, nil)
    case .group(let name, let id): (4, id, Array(name.text.utf8), nil)
    case .user(let name, let id): (5, id, Array(name.text.utf8), nil)
    case .webhooks(let id): (6, id, nil, nil)
    }
  }

  private init(_ row: Row) throws {
    let number: Int64 = row[1]
    guard let id = try? ApplicationID(number), let change = try Self.change(row, of: id) else {
      throw ApplicationStoreError.damaged("a change", of: number)
    }
    self = change
  }

  private static func change(_ row: Row, of id: ApplicationID) throws -> ApplicationChange? {
    let item = try row.bytes(2)
    switch row[0] as Int64 {
    case 1: return .application(id)
    case 2:
      guard let holder = GrantHolder(stored: item), let scope = Scope(stored: try row.bytes(3))
      else { return nil }
      return .grant(Grant.Key(scope, of: id, holder: holder))
    case 3: return TokenDigest(stored: item).map { .revocation($0, of: id) }
    case 4: return storedName(item, GroupName.init).map { .group($0, of: id) }
    case 5: return storedName(item, Name.init).map { .user($0, of: id) }
    case 6: return .webhooks(of: id)
    default: return nil
    }
  }
}
