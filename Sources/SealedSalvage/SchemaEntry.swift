/// A row of `sqlite_schema`: <https://sqlite.org/schematab.html>.
struct SchemaEntry {
  enum Kind: String { case table, index, view, trigger }

  let kind: Kind
  let name: String
  let rootPage: UInt32
  let sql: String?

  init?(_ values: [StoredValue], _ encoding: TextEncoding) {
    guard values.count == 5, case .text(let kindBytes) = values[0],
      let kind = Kind(rawValue: encoding.decode(kindBytes)),
      case .text(let name) = values[1], case .text = values[2]
    else { return nil }
    self.kind = kind
    self.name = encoding.decode(name)
    if case .integer(let page) = values[3] {
      rootPage = UInt32(exactly: page) ?? 0
    } else {
      rootPage = 0
    }
    if case .text(let sql) = values[4] { self.sql = encoding.decode(sql) } else { sql = nil }
  }

  init(_ table: KnownTable, rootPage: UInt32) {
    (kind, name, sql) = (.table, table.name, table.sql)
    self.rootPage = rootPage
  }

  /// Whether the part of a record in its page begins as a row of the schema does.
  static func looksLikeEntry(_ payload: BTreePage.Payload?, _ encoding: TextEncoding) -> Bool {
    guard let local = payload?.local else { return false }
    var header = ByteReader(local)
    guard let headerByteCount = try? header.varint(), headerByteCount <= local.count else {
      return false
    }
    let types = (0..<5).compactMap { _ in try? header.varint() }
    // An odd serial type of at least 13 is a text of (type - 13) / 2 bytes.
    guard types.count == 5, local.count - header.rest.count == Int(headerByteCount),
      types[0] >= 13, types[0] % 2 == 1, types[1] % 2 == 1, types[2] % 2 == 1,
      let kind = try? header.bytes(Int(min(types[0], 1000) - 13) / 2)
    else { return false }
    return Kind(rawValue: encoding.decode(Array(kind))) != nil
  }

  /// Whether the entry is a table whose rows must be copied.
  ///
  /// The rows of sqlite_sequence are restored separately, and ANALYZE can make its own tables
  /// again.
  var isOrdinaryTable: Bool { kind == .table && rootPage > 0 && !isInternal }
  var isInternal: Bool { name.lowercased().hasPrefix("sqlite_") }
  var isVirtualTable: Bool { kind == .table && rootPage == 0 }
  var isSequence: Bool { kind == .table && name.lowercased() == "sqlite_sequence" }
}
