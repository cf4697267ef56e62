/// A row as stored in a b-tree: <https://sqlite.org/fileformat2.html#record_format>.
enum StoredRecord {
  /// A limit above the number of columns that SQLite allows.
  static let columnLimit = 32_767

  /// Reads all values; nil if the bytes are not a record.
  static func values(of bytes: ArraySlice<UInt8>) -> [StoredValue]? {
    var header = ByteReader(bytes)
    guard let headerByteCount = header.varint(), headerByteCount >= 1,
      headerByteCount <= bytes.count
    else { return nil }
    let used = bytes.count - header.rest.count
    guard Int(headerByteCount) >= used else { return nil }
    var types = ByteReader(header.rest.prefix(Int(headerByteCount) - used))
    var body = ByteReader(bytes.dropFirst(Int(headerByteCount)))
    var values: [StoredValue] = []
    while !types.rest.isEmpty {
      guard values.count < columnLimit, let type = types.varint(),
        let value = value(ofType: type, &body)
      else { return nil }
      values.append(value)
    }
    return values
  }

  private static func value(ofType type: Int64, _ body: inout ByteReader) -> StoredValue? {
    switch type {
    case 0: return .null
    case 1...4: return body.integer(Int(type)).map { .integer($0) }
    case 5: return body.integer(6).map { .integer($0) }
    case 6: return body.integer(8).map { .integer($0) }
    case 7:
      return body.integer(8).map { .real(Double(bitPattern: UInt64(bitPattern: $0))) }
    case 8: return .integer(0)
    case 9: return .integer(1)
    case 12...:
      guard let length = Int(exactly: (type - 12) / 2), let bytes = body.bytes(length) else {
        return nil
      }
      return type % 2 == 0 ? .blob(Array(bytes)) : .text(Array(bytes))
    default: return nil
    }
  }
}

/// A value as SQLite stores it: <https://sqlite.org/fileformat2.html#record_format>.
enum StoredValue: Sendable, Equatable {
  case null
  case integer(Int64)
  case real(Double)
  /// Bytes in the database's encoding, well-formed or not.
  case text([UInt8])
  case blob([UInt8])
}

/// The text encoding of a database; the raw values are those of SQLite and of the database header.
enum TextEncoding: UInt8, Sendable, CaseIterable {
  case utf8 = 1
  case utf16LittleEndian = 2
  case utf16BigEndian = 3

  /// The name for `PRAGMA encoding`.
  var name: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }

  /// Reads text; ill-formed parts become replacement characters.
  func decode(_ bytes: [UInt8]) -> String {
    if self == .utf8 { return String(decoding: bytes, as: UTF8.self) }
    let isBigEndian = self == .utf16BigEndian
    let units = stride(from: 0, to: bytes.count - bytes.count % 2, by: 2).map { index in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    return String(decoding: units, as: UTF16.self)
  }
}
