import Glibc

/// A parser for the bytes that a client of a bus sends.
struct BusInput {
  /// The parts of a message that a service needs.
  struct Message {
    let isCall: Bool
    let serial: UInt32
    var member = ""
    var body: [UInt8] = []
  }

  private let descriptor: Int32

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Accepts any client without verifying its identity.
  mutating func authenticate() -> Bool {
    guard bytes(1) != nil else { return false }
    while let line = line() {
      switch line {
      case _ where line.hasPrefix("AUTH EXTERNAL"):
        Self.send(Array("OK 0123456789abcdef0123456789abcdef\r\n".utf8), descriptor)
      case _ where line.hasPrefix("AUTH"):
        Self.send(Array("REJECTED EXTERNAL\r\n".utf8), descriptor)
      case "BEGIN": return true
      default: Self.send(Array("ERROR\r\n".utf8), descriptor)
      }
    }
    return false
  }

  mutating func message() -> Message? {
    guard let start = bytes(16) else { return nil }
    let fieldByteCount = Self.number(start, 12)
    guard let fields = bytes((fieldByteCount + 7) / 8 * 8), let body = bytes(Self.number(start, 4))
    else { return nil }
    var message = Message(isCall: start[1] == 1, serial: UInt32(Self.number(start, 8)))
    message.body = body
    var offset = 0
    while offset < fieldByteCount {
      // A field has a code, the type of its value as a signature, and the value.
      let (code, type) = (fields[offset], fields[offset + 2])
      offset += 4
      if type == UInt8(ascii: "g") {
        offset += 1 + Int(fields[offset]) + 1
      } else if type == UInt8(ascii: "u") {
        offset += 4
      } else {
        let byteCount = Self.number(fields, offset)
        let text = String(decoding: fields[offset + 4..<offset + 4 + byteCount], as: UTF8.self)
        if code == 3 { message.member = text }
        offset += 4 + byteCount + 1
      }
      offset = (offset + 7) / 8 * 8
    }
    return message
  }

  private static func number(_ bytes: [UInt8], _ offset: Int) -> Int {
    (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
  }

  private mutating func line() -> String? {
    var line: [UInt8] = []
    while let byte = bytes(1)?.first {
      line.append(byte)
      if line.suffix(2) == [13, 10] { return String(decoding: line.dropLast(2), as: UTF8.self) }
    }
    return nil
  }

  private mutating func bytes(_ count: Int) -> [UInt8]? {
    var result = [UInt8](repeating: 0, count: count)
    var offset = 0
    while offset < count {
      let got = result.withUnsafeMutableBytes {
        read(descriptor, $0.baseAddress! + offset, count - offset)
      }
      guard got > 0 else { return nil }
      offset += got
    }
    return result
  }

  static func send(_ bytes: [UInt8], _ descriptor: Int32) {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress! + offset, bytes.count - offset, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      offset += count
    }
  }
}

extension [UInt8] {
  /// The message with a method's result.
  static func reply(to serial: UInt32, _ body: BusBody) -> [UInt8] {
    message(type: 2, serial, nil, body)
  }

  static func failure(of serial: UInt32, _ name: String, _ text: String) -> [UInt8] {
    message(type: 3, serial, name, BusBody().string(text))
  }

  private static func message(
    type: UInt8, _ serial: UInt32, _ errorName: String?, _ body: BusBody
  ) -> [UInt8] {
    var message = BusBody()
    for byte in [UInt8(ascii: "l"), type, 1, 1] { message.put(byte) }
    message.put(UInt32(body.bytes.count))
    message.put(serial)
    message.putArray(alignment: 8) { fields in
      fields.putField(5, "u") { $0.put(serial) }
      if let errorName { fields.putField(4, "s") { $0.put(errorName) } }
      if !body.signature.isEmpty { fields.putField(8, "g") { $0.putSignature(body.signature) } }
    }
    message.align(8)
    return message.bytes + body.bytes
  }
}

extension BusBody {
  fileprivate mutating func putField(
    _ code: UInt8, _ type: String, _ value: (inout BusBody) -> Void
  ) {
    align(8)
    put(code)
    putSignature(type)
    value(&self)
  }
}
