internal import SealedVFS

/// A row as it lies in a b-tree: <https://sqlite.org/fileformat2.html#record_format>.
enum StoredRecord {
  /// More columns than SQLite allows at most.
  static let columnLimit = 32_767

  /// Reads all values; nil where the bytes are no record.
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
