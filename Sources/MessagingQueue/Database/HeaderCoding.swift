internal import Foundation

/// Encodes a message's headers in the order of their names' bytes.
///
/// Each header is the length of the name (2 bytes, big endian), the name, the length of the value
/// (4 bytes, big endian) and the value.
enum HeaderCoding {
  static func byteCount(of headers: [String: String]) -> Int {
    headers.reduce(0) { $0 + 6 + $1.key.utf8.count + $1.value.utf8.count }
  }

  /// The bytes of headers; nil if there are none.
  static func encode(_ headers: [String: String]) -> [UInt8]? {
    if headers.isEmpty { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(byteCount(of: headers))
    let sorted = headers.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    for (name, value) in sorted {
      bytes.append(name.utf8, lengthByteCount: 2)
      bytes.append(value.utf8, lengthByteCount: 4)
    }
    return bytes
  }

  /// Reads the bytes of ``encode(_:)``; throws `damaged` for any others.
  static func decode(_ data: Data?) throws(EngineError) -> [String: String] {
    guard let data else { return [:] }
    var headers: [String: String] = [:]
    var rest = [UInt8](data)[...]
    while !rest.isEmpty {
      guard let name = rest.takeText(lengthByteCount: 2),
        let value = rest.takeText(lengthByteCount: 4),
        headers.updateValue(value, forKey: name) == nil
      else {
        throw EngineError(
          .damaged, "the headers of a message are damaged", hint: EngineError.damageHint)
      }
    }
    return headers
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ text: String.UTF8View, lengthByteCount: Int) {
    for shift in (0..<lengthByteCount).reversed() {
      append(UInt8(truncatingIfNeeded: text.count >> (8 * shift)))
    }
    append(contentsOf: text)
  }
}

extension ArraySlice<UInt8> {
  fileprivate mutating func takeText(lengthByteCount: Int) -> String? {
    guard count >= lengthByteCount else { return nil }
    let length = prefix(lengthByteCount).reduce(0) { $0 << 8 | Int($1) }
    self = dropFirst(lengthByteCount)
    guard count >= length else { return nil }
    defer { self = dropFirst(length) }
    return String(validating: prefix(length), as: UTF8.self)
  }
}
