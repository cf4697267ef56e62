/// A strict reader of JSON (RFC 8259) for the bodies of requests: bounded depth, no member twice.
struct JSONReader {
  /// How many objects and arrays can contain a value.
  static let maximumDepth = 16

  /// A violation, with the byte at which it was found.
  struct Fault: Error, Equatable {
    let offset: Int
  }

  private let bytes: [UInt8]
  private var position = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads one value, which must be the whole text but white space.
  static func value(_ bytes: [UInt8]) throws(Fault) -> JSONValue {
    var reader = JSONReader(bytes)
    let value = try reader.value(depth: 0)
    reader.skipSpace()
    guard reader.position == bytes.count else { throw reader.fault }
    return value
  }

  private var fault: Fault { Fault(offset: position) }
  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      position += 1
    }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    skipSpace()
    guard next == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ character: Unicode.Scalar) throws(Fault) {
    guard take(character) else { throw fault }
  }

  private mutating func value(depth: Int) throws(Fault) -> JSONValue {
    guard depth <= Self.maximumDepth else { throw fault }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .boolean(true))
    case UInt8(ascii: "f"): return try word("false", .boolean(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func word(_ word: String, _ value: JSONValue) throws(Fault) -> JSONValue {
    guard bytes[position...].starts(with: word.utf8) else { throw fault }
    position += word.utf8.count
    return value
  }

  private mutating func object(depth: Int) throws(Fault) -> JSONValue {
    try expect("{")
    var members: [JSONMember] = []
    var names: Set<Name> = []
    if take("}") { return .object([]) }
    repeat {
      skipSpace()
      let name = try string()
      guard names.insert(Name(unchecked: name)).inserted else { throw fault }
      try expect(":")
      members.append(JSONMember(name, try value(depth: depth + 1)))
    } while take(",")
    try expect("}")
    return .object(members)
  }

  private mutating func array(depth: Int) throws(Fault) -> JSONValue {
    try expect("[")
    var values: [JSONValue] = []
    if take("]") { return .array([]) }
    repeat { values.append(try value(depth: depth + 1)) } while take(",")
    try expect("]")
    return .array(values)
  }

  private mutating func digits() throws(Fault) {
    guard next?.isDigit == true else { throw fault }
    while next?.isDigit == true { position += 1 }
  }

  private mutating func number() throws(Fault) -> JSONValue {
    let start = position
    var isInteger = true
    if next == UInt8(ascii: "-") { position += 1 }
    let first = next
    let firstPosition = position
    try digits()
    guard first != UInt8(ascii: "0") || position == firstPosition + 1 else { throw fault }
    if next == UInt8(ascii: ".") {
      isInteger = false
      position += 1
      try digits()
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      isInteger = false
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      try digits()
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if isInteger, let value = Int64(text) { return .integer(value) }
    guard let value = Double(text), value.isFinite else { throw fault }
    return .number(value)
  }

  private mutating func string() throws(Fault) -> String {
    guard next == UInt8(ascii: "\"") else { throw fault }
    position += 1
    var decoded: [UInt8] = []
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: decoded, as: UTF8.self) else { throw fault }
        return text
      case UInt8(ascii: "\\"): decoded.append(contentsOf: Array(String(try escape()).utf8))
      case 0..<0x20: throw fault
      default: decoded.append(byte)
      }
    }
    throw fault
  }

  private mutating func escape() throws(Fault) -> Unicode.Scalar {
    guard let byte = next else { throw fault }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): break
    default: throw fault
    }
    let unit = try hexadecimalUnit()
    if let scalar = Unicode.Scalar(unit) { return scalar }
    // A surrogate: the first of a pair, or an error.
    guard UTF16.isLeadSurrogate(UInt16(unit)), next == UInt8(ascii: "\\") else { throw fault }
    position += 1
    guard next == UInt8(ascii: "u") else { throw fault }
    position += 1
    let second = try hexadecimalUnit()
    guard UTF16.isTrailSurrogate(UInt16(second)),
      let scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (second - 0xDC00))
    else { throw fault }
    return scalar
  }

  private mutating func hexadecimalUnit() throws(Fault) -> UInt32 {
    guard bytes.count - position >= 4 else { throw fault }
    var unit: UInt32 = 0
    for byte in bytes[position..<position + 4] {
      guard let digit = byte.hexadecimalDigit else { throw fault }
      unit = unit << 4 | UInt32(digit)
    }
    position += 4
    return unit
  }
}

extension UInt8 {
  /// The value of a hexadecimal digit; nil for another character.
  var hexadecimalDigit: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
