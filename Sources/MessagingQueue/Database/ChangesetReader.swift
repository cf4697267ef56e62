/// Reads the tables of a changeset, and refuses bytes that SQLite's session extension would not have written.
///
/// SQLite 3.40 reads beyond the end of others, or for ever. The format: `sqlite3session.c`, "RECORD FORMAT" and
/// "CHANGESET FORMAT".
struct ChangesetReader {
  private static let mostColumns = 2_000

  private let bytes: [UInt8]
  private var offset = 0

  /// - Returns: the tables, and which of their columns are of the primary key.
  /// - Throws: `damaged`.
  static func tables(of bytes: [UInt8]) throws -> [String: [Bool]] {
    var reader = ChangesetReader(bytes)
    var tables: [String: [Bool]] = [:]
    var keys: [Bool] = []
    while reader.offset < bytes.count {
      if try reader.byte() == UInt8(ascii: "T") {
        let table: String
        (table, keys) = try reader.header()
        guard tables[table, default: keys] == keys else { throw RowChanges.damaged }
        tables[table] = keys
      } else {
        reader.offset -= 1
        try reader.passChange(keys)
      }
    }
    return tables
  }

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  private mutating func header() throws -> (String, [Bool]) {
    let count = try length()
    guard (1...Self.mostColumns).contains(count) else { throw RowChanges.damaged }
    let keys = try (0..<count).map { _ in try byte() != 0 }
    guard let end = bytes[offset...].firstIndex(of: 0),
      let name = String(validating: bytes[offset..<end], as: UTF8.self), keys.contains(true)
    else { throw RowChanges.damaged }
    offset = end + 1
    return (name, keys)
  }

  private mutating func passChange(_ keys: [Bool]) throws {
    let operation = try byte()
    guard !keys.isEmpty, try byte() <= 1 else { throw RowChanges.damaged }
    switch operation {
    // SQLITE_DELETE and SQLITE_INSERT: all values.
    case 9, 18: for _ in keys { try passValue(isRequired: true) }
    // SQLITE_UPDATE: the key and what differs, before and after.
    case 23:
      for isKey in keys { try passValue(isRequired: isKey) }
      for _ in keys { try passValue(isRequired: false) }
    default: throw RowChanges.damaged
    }
  }

  private mutating func passValue(isRequired: Bool) throws {
    switch try byte() {
    case 0 where !isRequired: break
    case 1, 2: try pass(8)
    case 3, 4: try pass(length())
    case 5: break
    default: throw RowChanges.damaged
    }
  }

  private mutating func pass(_ count: Int) throws {
    guard count <= bytes.count - offset else { throw RowChanges.damaged }
    offset += count
  }

  private mutating func byte() throws -> UInt8 {
    guard offset < bytes.count else { throw RowChanges.damaged }
    defer { offset += 1 }
    return bytes[offset]
  }

  /// A varint of SQLite, of at most 28 bits.
  private mutating func length() throws -> Int {
    var length = 0
    for _ in 0..<4 {
      let next = try byte()
      length = length << 7 | Int(next & 127)
      if next < 128 { return length }
    }
    throw RowChanges.damaged
  }
}
