/// A row as stored in a b-tree: <https://sqlite.org/fileformat2.html#record_format>.
enum StoredRecord {
  /// A limit above the number of columns that SQLite allows.
  static let columnLimit = 32_767

  /// Reads all values.
  static func values(of bytes: ArraySlice<UInt8>) throws(InvalidBytes) -> [StoredValue] {
    var header = ByteReader(bytes)
    let headerByteCount = Int(try header.varint())
    let used = bytes.count - header.rest.count
    guard headerByteCount >= used, headerByteCount <= bytes.count else { throw InvalidBytes() }
    var types = ByteReader(header.rest.prefix(headerByteCount - used))
    var body = ByteReader(bytes.dropFirst(headerByteCount))
    var values: [StoredValue] = []
    while !types.rest.isEmpty {
      guard values.count < columnLimit else { throw InvalidBytes() }
      values.append(try value(ofType: types.varint(), &body))
    }
    return values
  }

  private static func value(
    ofType type: Int64, _ body: inout ByteReader
  ) throws(InvalidBytes) -> StoredValue {
    switch type {
    case 0: return .null
    case 1...4: return .integer(try body.integer(Int(type)))
    case 5: return .integer(try body.integer(6))
    case 6: return .integer(try body.integer(8))
    case 7: return .real(Double(bitPattern: UInt64(bitPattern: try body.integer(8))))
    case 8: return .integer(0)
    case 9: return .integer(1)
    case 12...:
      let bytes = Array(try body.bytes(Int((type - 12) / 2)))
      return type % 2 == 0 ? .blob(bytes) : .text(bytes)
    default: throw InvalidBytes()
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
