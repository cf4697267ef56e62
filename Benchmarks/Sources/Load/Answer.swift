import Glibc

/// A complete answer of a server.
///
/// A connection has one request under way, so that all its bytes belong to one answer.
struct Answer {
  let isSuccess: Bool
  private let bytes: [UInt8]

  /// Reads an answer of HTTP/1.1 with a length; nil if it is not complete.
  init?(http bytes: [UInt8]) {
    guard let end = bytes.position(of: "\r\n\r\n"),
      let field = bytes.position(of: "Content-Length: ")
    else { return nil }
    var length = 0
    for digit in bytes[(field + 16)...] {
      guard (0x30...0x39).contains(digit) else { break }
      length = length * 10 + Int(digit - 0x30)
    }
    guard bytes.count >= end + 4 + length else { return nil }
    // HTTP/1.1 200 OK
    isSuccess = bytes[9] == UInt8(ascii: "2")
    self.bytes = bytes
  }

  /// Reads a bulk string or an error of Redis; nil if it is not complete.
  init?(redis bytes: [UInt8]) {
    guard let first = bytes.first, let end = bytes.position(of: "\r\n") else { return nil }
    isSuccess = first == UInt8(ascii: "$")
    if isSuccess, bytes.count < end + 4 || bytes.last != UInt8(ascii: "\n") { return nil }
    self.bytes = bytes
  }

  func contains(_ text: String) -> Bool { bytes.position(of: text) != nil }

  func text(between prefix: String, and suffix: String) -> String? {
    guard let found = bytes.position(of: prefix) else { return nil }
    let start = found + prefix.utf8.count
    guard let end = bytes.position(of: suffix, from: start) else { return nil }
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension [UInt8] {
  /// Where a text begins; nil if it is not there.
  fileprivate func position(of text: String, from start: Int = 0) -> Int? {
    let length = text.utf8.count
    return text.withCString { text in
      withUnsafeBytes { bytes in
        guard let base = bytes.baseAddress else { return nil }
        var start = start
        while start + length <= bytes.count,
          let found = memchr(base + start, Int32(text[0]), bytes.count - start - length + 1)
        {
          if memcmp(found, text, length) == 0 { return UnsafeRawPointer(found) - base }
          start = UnsafeRawPointer(found) - base + 1
        }
        return nil
      }
    }
  }
}
