/// How large the frames of a server can be.
struct STOMPFrameLimits: Sendable {
  /// The longest command, in bytes.
  var commandByteCount = 32
  /// The most headers of a frame.
  var headerCount = 1_000
  /// The longest line of a header, in bytes.
  var lineByteCount = 64 << 10
  /// The most bytes of all header lines together.
  var headerByteCount = 256 << 10
  /// The largest body, in bytes.
  var bodyByteCount = 16 << 20
}

/// Why bytes are no frame; for people.
struct STOMPFault: Error, Sendable, Equatable {
  let message: String

  init(_ message: String) { self.message = message }
}

/// Turns the bytes of a server into frames of STOMP 1.2, however they are fragmented.
///
/// It keeps what has come of one frame, never more than its limits, and looks at each byte once.
struct STOMPDecoder: Sendable {
  private enum Part: Sendable {
    /// Between frames, where line feeds are heart-beats.
    case between
    case command
    case headers
    /// The rest of a body whose length was given.
    case counted(Int)
    /// A body that ends at the first NUL.
    case open
    case end
  }

  private let limits: STOMPFrameLimits
  private var part = Part.between
  private var line: [UInt8] = []
  private var frame = STOMPFrame("")
  private var headerByteCount = 0

  init(_ limits: STOMPFrameLimits = STOMPFrameLimits()) { self.limits = limits }

  /// Takes bytes up to the end of the next frame, and removes them from the buffer.
  ///
  /// - Returns: the frame; nil if it has not ended, and everything was taken.
  /// - Throws: ``STOMPFault``; nothing behind it can be read.
  mutating func next(_ bytes: inout ArraySlice<UInt8>) throws(STOMPFault) -> STOMPFrame? {
    while let byte = bytes.first {
      switch part {
      case .between:
        bytes.removeFirst()
        if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") { continue }
        guard byte != 0 else { throw STOMPFault("the frame ends in its command") }
        line = [byte]
        part = .command
      case .command:
        guard try takeLine(&bytes, limits.commandByteCount, "the command is too long") else {
          continue
        }
        frame = STOMPFrame(try Self.text(line))
        line = []
        headerByteCount = 0
        part = .headers
      case .headers:
        let room = min(limits.lineByteCount, limits.headerByteCount - headerByteCount)
        guard try takeLine(&bytes, room, "the headers are too long") else { continue }
        if line.isEmpty { try beginBody() } else { try takeHeader() }
      case .counted(let rest):
        let taken = bytes.prefix(rest)
        frame.body += taken
        bytes.removeFirst(taken.count)
        part = taken.count == rest ? .end : .counted(rest - taken.count)
      case .open:
        let end = bytes.firstIndex(of: 0) ?? bytes.endIndex
        guard frame.body.count + (end - bytes.startIndex) <= limits.bodyByteCount else {
          throw tooLarge
        }
        frame.body += bytes[..<end]
        bytes = bytes[end...]
        if !bytes.isEmpty { part = .end }
      case .end:
        guard byte == 0 else { throw STOMPFault("the body is longer than its content-length") }
        bytes.removeFirst()
        part = .between
        defer { frame = STOMPFrame("") }
        return frame
      }
    }
    return nil
  }

  private var tooLarge: STOMPFault {
    STOMPFault("the body is larger than \(limits.bodyByteCount) bytes")
  }

  /// Takes bytes up to the end of the line; false if it has not come.
  private mutating func takeLine(
    _ bytes: inout ArraySlice<UInt8>, _ maximumByteCount: Int, _ fault: String
  ) throws(STOMPFault) -> Bool {
    let end = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.endIndex
    guard line.count + (end - bytes.startIndex) <= maximumByteCount else { throw STOMPFault(fault) }
    guard !bytes[..<end].contains(0) else { throw STOMPFault("the frame ends in its headers") }
    line += bytes[..<end]
    bytes = bytes[end...]
    guard bytes.popFirst() != nil else { return false }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    return true
  }

  private mutating func beginBody() throws(STOMPFault) {
    guard let text = frame["content-length"] else { return part = .open }
    guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let length = Int(text)
    else { throw STOMPFault("the content-length is not a number") }
    guard length <= limits.bodyByteCount else { throw tooLarge }
    part = length == 0 ? .end : .counted(length)
  }

  private mutating func takeHeader() throws(STOMPFault) {
    headerByteCount += line.count + 1
    guard frame.headers.count < limits.headerCount else {
      throw STOMPFault("the frame has more than \(limits.headerCount) headers")
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
      throw STOMPFault("a header has no name, or no colon")
    }
    let (name, value) = (line[..<colon], line[(colon + 1)...])
    frame.append(try Self.text(unescaped(name)), try Self.text(unescaped(value)))
    line = []
  }

  private func unescaped(_ bytes: ArraySlice<UInt8>) throws(STOMPFault) -> [UInt8] {
    guard bytes.contains(UInt8(ascii: "\\")), !STOMPFrame.isUnescaped(frame.command) else {
      return Array(bytes)
    }
    var text: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        text.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "n"): text.append(UInt8(ascii: "\n"))
      case UInt8(ascii: "r"): text.append(UInt8(ascii: "\r"))
      case UInt8(ascii: "c"): text.append(UInt8(ascii: ":"))
      case UInt8(ascii: "\\"): text.append(UInt8(ascii: "\\"))
      default: throw STOMPFault("a header has an unknown escape")
      }
    }
    return text
  }

  private static func text(_ bytes: [UInt8]) throws(STOMPFault) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw STOMPFault("a line is not UTF-8")
    }
    return text
  }
}
