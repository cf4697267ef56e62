/// A value as SQLite stores it: <https://sqlite.org/fileformat2.html#record_format>.
package enum StoredValue: Sendable, Equatable {
  case null
  case integer(Int64)
  case real(Double)
  /// Bytes in the database's encoding, well-formed or not.
  case text([UInt8])
  case blob([UInt8])
}

/// How a database writes its text; the values are those of SQLite and of the database header.
package enum TextEncoding: UInt8, Sendable, CaseIterable {
  case utf8 = 1
  case utf16LittleEndian = 2
  case utf16BigEndian = 3

  /// The name for `PRAGMA encoding`.
  package var name: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }

  /// Reads text; ill-formed parts become replacement characters.
  package func decode(_ bytes: [UInt8]) -> String {
    if self == .utf8 { return String(decoding: bytes, as: UTF8.self) }
    let isBigEndian = self == .utf16BigEndian
    let units = stride(from: 0, to: bytes.count - bytes.count % 2, by: 2).map { index in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    return String(decoding: units, as: UTF16.self)
  }
}
