import Glibc

/// A complete answer of a server, or a message that it sends by itself.
struct Answer {
  let isSuccess: Bool
  /// How many bytes of the connection's input end with it.
  let byteCount: Int
  private let bytes: ArraySlice<UInt8>

  private init(_ bytes: ArraySlice<UInt8>, isSuccess: Bool, byteCount: Int? = nil) {
    self.bytes = bytes
    self.isSuccess = isSuccess
    self.byteCount = byteCount ?? bytes.count
  }

  /// Reads an answer of HTTP/1.1 with a length; nil if it is not complete.
  init?(http input: ArraySlice<UInt8>) {
    guard let head = input.position(of: "\r\n\r\n"),
      let length = input.number(behind: "Content-Length: "), input.endIndex >= head + 4 + length
    else { return nil }
    // HTTP/1.1 200 OK
    self.init(
      input[..<(head + 4 + length)], isSuccess: input[input.startIndex + 9] == UInt8(ascii: "2"))
  }

  /// Reads a bulk string or an error of Redis; nil if it is not complete.
  init?(redis input: ArraySlice<UInt8>) {
    guard let first = input.first, let end = input.position(of: "\r\n") else { return nil }
    let isSuccess = first == UInt8(ascii: "$")
    if isSuccess, input.endIndex < end + 4 || input.last != UInt8(ascii: "\n") { return nil }
    self.init(input, isSuccess: isSuccess)
  }

  /// Reads a frame of STOMP, behind the newlines that beat for a server; nil if it is not complete.
  init?(stomp input: ArraySlice<UInt8>) {
    let frame = input.drop { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    guard let head = frame.position(of: "\n\n") else { return nil }
    let length = frame[...head].number(behind: "\ncontent-length:")
    guard let end = length.map({ head + 2 + $0 }) ?? frame[head...].firstIndex(of: 0),
      frame.endIndex > end
    else { return nil }
    self.init(
      frame[...end], isSuccess: !frame.starts(with: "ERROR".utf8),
      byteCount: end + 1 - input.startIndex)
  }

  /// Reads the head of the answer to an upgrade, or a message of one WebSocket frame; nil if it is not complete.
  ///
  /// A ping is skipped without an answer: no measurement lasts so long that a server ends a silent connection.
  init?(webSocket input: ArraySlice<UInt8>) {
    if input.starts(with: "HTTP/".utf8) {
      guard let end = input.position(of: "\r\n\r\n") else { return nil }
      self.init(input[..<(end + 4)], isSuccess: true)
      return
    }
    var frame = input
    while frame.count >= 2 {
      let (kind, shortLength) = (frame[frame.startIndex] & 0xF, frame[frame.startIndex + 1])
      let lengthCount = shortLength == 127 ? 8 : shortLength == 126 ? 2 : 0
      let start = frame.startIndex + 2 + lengthCount
      guard frame.endIndex >= start else { return nil }
      let length =
        lengthCount == 0
        ? Int(shortLength) : frame[(start - lengthCount)..<start].reduce(0) { $0 << 8 | Int($1) }
      guard frame.endIndex >= start + length else { return nil }
      let (text, ping): (UInt8, UInt8) = (1, 9)
      if kind != ping {
        self.init(
          frame[start..<(start + length)], isSuccess: kind == text,
          byteCount: start + length - input.startIndex)
        return
      }
      frame = frame[(start + length)...]
    }
    return nil
  }

  func contains(_ text: String) -> Bool { bytes.position(of: text) != nil }

  func text(between prefix: String, and suffix: String) -> String? {
    guard let found = bytes.position(of: prefix) else { return nil }
    let rest = bytes[(found + prefix.utf8.count)...]
    guard let end = rest.position(of: suffix) else { return nil }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension ArraySlice<UInt8> {
  /// The index where a text begins; nil if it is not there.
  fileprivate func position(of text: String) -> Int? {
    let length = text.utf8.count
    return text.withCString { text in
      withUnsafeBytes { bytes in
        guard let base = bytes.baseAddress else { return nil }
        var start = 0
        while start + length <= bytes.count,
          let found = memchr(base + start, Int32(text[0]), bytes.count - start - length + 1)
        {
          let offset = UnsafeRawPointer(found) - base
          if memcmp(found, text, length) == 0 { return startIndex + offset }
          start = offset + 1
        }
        return nil
      }
    }
  }

  /// The decimal number behind a text; nil if the text is not there.
  fileprivate func number(behind text: String) -> Int? {
    guard let found = position(of: text) else { return nil }
    return self[(found + text.utf8.count)...].prefix { (0x30...0x39).contains($0) }
      .reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }
}
