/// A position in a JSON text that advances by one token or one value.
struct JSONScanner {
  private let part: String
  private var position: Int
  private let end: Int

  init(part: String, range: Range<Int>) {
    self.part = part
    position = range.lowerBound
    end = range.upperBound
  }

  /// Advances past a character if it is the next one.
  mutating func take(_ character: Unicode.Scalar, in bytes: RawSpan) -> Bool {
    guard position < end, bytes.byte(position) == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  mutating func expect(_ character: Unicode.Scalar, in bytes: RawSpan) throws(FormatFault) {
    guard take(character, in: bytes) else { throw FormatFault(part, "\(character) is missing") }
  }

  func expectEnd() throws(FormatFault) {
    guard position == end else { throw FormatFault(part, "bytes after the end") }
  }

  /// Advances past a string and returns the range between its quotation marks.
  mutating func string(in bytes: RawSpan) throws(FormatFault) -> Range<Int> {
    try expect("\"", in: bytes)
    let start = position
    while position < end {
      let byte = bytes.byte(position)
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return start..<position - 1
      case UInt8(ascii: "\\"): position += 1  // the decoder checks the escape
      case 0..<0x20: throw FormatFault(part, "a control character in a string")
      default: break
      }
    }
    throw FormatFault(part, "a string has no end")
  }

  /// Advances past any value and returns its range.
  ///
  /// - Parameter depth: the number of objects and arrays that contain the value.
  mutating func value(in bytes: RawSpan, depth: Int) throws(FormatFault) -> Range<Int> {
    let start = position
    guard position < end else { throw FormatFault(part, "a value is missing") }
    switch bytes.byte(position) {
    case UInt8(ascii: "\""): _ = try string(in: bytes)
    case UInt8(ascii: "{"): try nest("}", hasNames: true, in: bytes, depth: depth)
    case UInt8(ascii: "["): try nest("]", hasNames: false, in: bytes, depth: depth)
    default:
      // A number or a literal; the caller that needs the value checks it.
      while position < end, isWordByte(bytes.byte(position)) { position += 1 }
      guard position > start else { throw FormatFault(part, "not a value") }
    }
    return start..<position
  }

  private mutating func nest(
    _ close: Unicode.Scalar, hasNames: Bool, in bytes: RawSpan, depth: Int
  ) throws(FormatFault) {
    guard depth < JSONText.maximumDepth else { throw FormatFault(part, "nested too deeply") }
    position += 1
    if take(close, in: bytes) { return }
    repeat {
      if hasNames {
        _ = try string(in: bytes)
        try expect(":", in: bytes)
      }
      _ = try value(in: bytes, depth: depth + 1)
    } while take(",", in: bytes)
    try expect(close, in: bytes)
  }

  private func isWordByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
    default: false
    }
  }
}

/// A violation of the vault format.
///
/// It names the part of the file, never its contents.
struct FormatFault: Error, CustomStringConvertible {
  let part: String
  let reason: String
  /// The other version, for a file that breaks no rule but has that version.
  let otherVersion: Int?

  init(_ part: String, _ reason: String, otherVersion: Int? = nil) {
    self.part = part
    self.reason = reason
    self.otherVersion = otherVersion
  }

  var description: String { "\(part): \(reason)" }
}

extension RawSpan {
  /// The byte at an offset; the bounds are checked.
  func byte(_ offset: Int) -> UInt8 {
    unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
  }

  /// Whether the bytes from `offset` on start with these.
  func hasBytes(_ bytes: some Collection<UInt8>, at offset: Int) -> Bool {
    guard byteCount - offset >= bytes.count else { return false }
    var offset = offset
    for expected in bytes {
      if byte(offset) != expected { return false }
      offset += 1
    }
    return true
  }

  /// Whether the bytes of a range are exactly these.
  func equals(_ bytes: some Collection<UInt8>, in range: Range<Int>) -> Bool {
    range.count == bytes.count && hasBytes(bytes, at: range.lowerBound)
  }

  /// A heap copy of the bytes of a range; not for secrets.
  func array(_ range: Range<Int>) -> [UInt8] {
    range.map { byte($0) }
  }

  /// Compares the bytes of `range` with `other`: negative if they come first, zero if they are
  /// equal.
  func compare(_ range: Range<Int>, to other: Range<Int>, of otherBytes: RawSpan) -> Int {
    for offset in 0..<Swift.min(range.count, other.count) {
      let difference =
        Int(byte(range.lowerBound + offset)) - Int(otherBytes.byte(other.lowerBound + offset))
      if difference != 0 { return difference }
    }
    return range.count - other.count
  }
}
