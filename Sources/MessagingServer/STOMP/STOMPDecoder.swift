/// How large the frames of a client can be.
struct STOMPFrameLimits: Sendable {
  /// The longest command, in bytes.
  ///
  /// Default: 32.
  var commandByteCount = 32
  /// The most headers of a frame.
  ///
  /// Default: 100.
  var headerCount = 100
  /// The most bytes of all header lines together.
  ///
  /// Default: 16 KiB.
  var headerByteCount = 16 << 10
  /// The largest body, in bytes.
  ///
  /// Default: 256 KiB.
  var bodyByteCount = 256 << 10
}

/// Why bytes are no frame; for people.
struct STOMPFault: Error, Sendable, Equatable {
  let message: String

  init(_ message: String) { self.message = message }
}

/// Turns the bytes of a client into frames, however they are fragmented.
///
/// It keeps what has come of one frame, and looks at each byte once.
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
  /// Nil before the version is agreed on.
  var version: STOMPVersion?
  private var part = Part.between
  private var line: [UInt8] = []
  private var frame = STOMPFrame("")
  private var headerByteCount = 0

  init(_ limits: STOMPFrameLimits = STOMPFrameLimits()) { self.limits = limits }

  /// Whether a frame has begun and not ended.
  var isInFrame: Bool { if case .between = part { false } else { true } }

  /// The bytes of the frame that has not ended.
  var byteCount: Int { line.count + headerByteCount + frame.body.count }

  /// Takes bytes up to the end of the next frame, and removes them from the buffer.
  ///
  /// - Returns: the frame; nil if it has not ended, and everything was taken.
  /// - Throws: ``STOMPFault``; nothing behind it can be read.
  mutating func next(_ bytes: inout ArraySlice<UInt8>) throws(STOMPFault) -> STOMPFrame? {
    while let byte = bytes.first {
      switch part {
      case .between:
        bytes.removeFirst()
        if byte == .lineFeed || byte == .carriageReturn { continue }
        line = [byte]
        part = .command
      case .command:
        guard try takeLine(&bytes, limits.commandByteCount, "the command is too long") else {
          continue
        }
        frame = STOMPFrame(try Self.text(line, "the command"))
        line = []
        headerByteCount = 0
        part = .headers
      case .headers:
        let room = limits.headerByteCount - headerByteCount
        guard try takeLine(&bytes, room, "the headers are too long") else { continue }
        try takeHeader()
      case .counted(let rest):
        let taken = bytes.prefix(rest)
        frame.body += taken
        bytes.removeFirst(taken.count)
        part = taken.count == rest ? .end : .counted(rest - taken.count)
      case .open:
        let end = bytes.firstIndex(of: 0) ?? bytes.endIndex
        guard frame.body.count + (end - bytes.startIndex) <= limits.bodyByteCount else {
          throw STOMPFault("the body is larger than \(limits.bodyByteCount) bytes")
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

  /// Takes bytes up to the end of the line; false if it has not come.
  private mutating func takeLine(
    _ bytes: inout ArraySlice<UInt8>, _ maximumByteCount: Int, _ fault: String
  ) throws(STOMPFault) -> Bool {
    let end = bytes.firstIndex(of: .lineFeed) ?? bytes.endIndex
    line += bytes[..<end]
    guard line.count <= maximumByteCount else { throw STOMPFault(fault) }
    guard !bytes[..<end].contains(0) else { throw STOMPFault("the frame ends in its headers") }
    bytes = bytes[end...]
    guard bytes.popFirst() != nil else { return false }
    // Version 1.1 ends a line with a line feed alone, and has no escape for a carriage return.
    if line.last == .carriageReturn, version != .v11 { line.removeLast() }
    guard !line.contains(.carriageReturn) else {
      throw STOMPFault("a line has a carriage return that does not end it")
    }
    return true
  }

  private mutating func takeHeader() throws(STOMPFault) {
    if line.isEmpty {
      part = .open
      guard let text = frame["content-length"] else { return }
      guard text.utf8.count <= 9, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let length = Int(text)
      else { throw STOMPFault("the content-length is not a number") }
      guard length <= limits.bodyByteCount else {
        throw STOMPFault("the body is larger than \(limits.bodyByteCount) bytes")
      }
      part = length == 0 ? .end : .counted(length)
      return
    }
    headerByteCount += line.count + 1
    guard frame.headers.count < limits.headerCount else {
      throw STOMPFault("the frame has more than \(limits.headerCount) headers")
    }
    guard let colon = line.firstIndex(of: .colon), colon > 0 else {
      throw STOMPFault("a header has no name, or no colon")
    }
    var value = line[(colon + 1)...]
    // Clients of 1.0 put a space behind the colon, which later versions forbid.
    if version == .v10 { value = value.drop { $0 == UInt8(ascii: " ") } }
    let name = try unescaped(line[..<colon])
    frame.append(try Self.text(name, "a header"), try Self.text(unescaped(value), "a header"))
    line = []
  }

  private func unescaped(_ bytes: ArraySlice<UInt8>) throws(STOMPFault) -> [UInt8] {
    guard let version, version > .v10, !STOMPFrame.isUnescaped(frame.command),
      bytes.contains(.backslash)
    else { return Array(bytes) }
    var text: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == .backslash else {
        text.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "n"): text.append(.lineFeed)
      case UInt8(ascii: "c"): text.append(.colon)
      case .backslash: text.append(.backslash)
      case UInt8(ascii: "r") where version >= .v12: text.append(.carriageReturn)
      default: throw STOMPFault("a header has an unknown escape")
      }
    }
    return text
  }

  private static func text(
    _ bytes: [UInt8], _ what: String
  ) throws(STOMPFault) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw STOMPFault("\(what) is not UTF-8")
    }
    return text
  }
}
