internal import StrictJSON

/// Writes the CBOR (RFC 8949) of a token: definite lengths, shortest numbers.
struct CBORWriter {
  /// The major types in use.
  enum MajorType: UInt8 {
    case unsigned = 0
    case negative = 1
    case bytes = 2
    case text = 3
    case array = 4
    case map = 5
    case simple = 7
  }

  private(set) var bytes: [UInt8] = []

  mutating func head(_ type: MajorType, _ number: UInt64) {
    let major = type.rawValue << 5
    let width: Int
    switch number {
    case 0..<24:
      bytes.append(major | UInt8(number))
      return
    case 24...0xFF: width = 1
    case 0x100...0xFFFF: width = 2
    case 0x1_0000...0xFFFF_FFFF: width = 4
    default: width = 8
    }
    bytes.append(major | UInt8(24 + width.trailingZeroBitCount))
    for shift in (0..<width).reversed() {
      bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * shift)))
    }
  }

  mutating func byteString(_ string: [UInt8]) {
    head(.bytes, UInt64(string.count))
    bytes += string
  }

  /// A key of a token: a byte string of ASCII.
  mutating func key(_ name: StaticString) { byteString(Array("\(name)".utf8)) }

  mutating func text(_ text: String) {
    head(.text, UInt64(text.utf8.count))
    bytes += text.utf8
  }

  mutating func value(_ value: JSONValue) {
    switch value {
    case .null: bytes.append(0xF6)
    case .boolean(let value): bytes.append(value ? 0xF5 : 0xF4)
    case .integer(let value):
      if value >= 0 { head(.unsigned, UInt64(value)) } else { head(.negative, UInt64(-1 - value)) }
    case .number(let value):
      let bits = value.double.bitPattern
      bytes.append(0xFB)
      for shift in (0..<8).reversed() {
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * shift)))
      }
    case .string(let value): text(value)
    case .array(let values):
      head(.array, UInt64(values.count))
      for value in values { self.value(value) }
    case .object(let members): map(members)
    }
  }

  mutating func map(_ members: [JSONMember]) {
    head(.map, UInt64(members.count))
    for member in members {
      text(member.name)
      value(member.value)
    }
  }
}

/// Reads exactly what ``CBORWriter`` writes; any other encoding of the same values is a fault.
struct CBORReader {
  /// How many maps and arrays of a token's `meta` can contain a value.
  static let maximumDepth = 16

  /// The bytes are not CBOR in the form of our tokens.
  struct Fault: Error {}

  private let bytes: [UInt8]
  private(set) var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { position == bytes.count }

  private mutating func byte() throws(Fault) -> UInt8 {
    guard position < bytes.count else { throw Fault() }
    position += 1
    return bytes[position - 1]
  }

  /// The number of a head of a type, in its shortest form.
  mutating func head(_ type: CBORWriter.MajorType) throws(Fault) -> UInt64 {
    let first = try byte()
    guard first >> 5 == type.rawValue else { throw Fault() }
    return try number(first & 0x1F)
  }

  private mutating func number(_ information: UInt8) throws(Fault) -> UInt64 {
    if information < 24 { return UInt64(information) }
    guard information < 28 else { throw Fault() }
    let width = 1 << Int(information - 24)
    var number: UInt64 = 0
    for _ in 0..<width { number = number << 8 | UInt64(try byte()) }
    let least: UInt64 = width == 1 ? 24 : 1 << UInt64(4 * width)
    guard number >= least else { throw Fault() }
    return number
  }

  /// A count of things of at least one byte each, which the rest of the input must have.
  private mutating func count(_ type: CBORWriter.MajorType) throws(Fault) -> Int {
    let number = try head(type)
    guard number <= UInt64(bytes.count - position) else { throw Fault() }
    return Int(number)
  }

  mutating func byteString() throws(Fault) -> [UInt8] {
    let count = try count(.bytes)
    position += count
    return Array(bytes[position - count..<position])
  }

  mutating func expect(key name: StaticString) throws(Fault) {
    guard try byteString().elementsEqual("\(name)".utf8) else { throw Fault() }
  }

  mutating func text() throws(Fault) -> String {
    let count = try count(.text)
    guard
      let text = String(validating: bytes[position..<position + count], as: UTF8.self)
    else { throw Fault() }
    position += count
    return text
  }

  /// The number of pairs of a map.
  mutating func mapCount() throws(Fault) -> Int { try count(.map) }

  mutating func map(depth: Int = 0) throws(Fault) -> [JSONMember] {
    var members: [JSONMember] = []
    var names: Set<Name> = []
    for _ in 0..<(try mapCount()) {
      let name = try text()
      guard names.insert(Name(unchecked: name)).inserted else { throw Fault() }
      members.append(JSONMember(name, try value(depth: depth + 1)))
    }
    return members
  }

  private mutating func value(depth: Int) throws(Fault) -> JSONValue {
    guard depth <= Self.maximumDepth, position < bytes.count else { throw Fault() }
    switch CBORWriter.MajorType(rawValue: bytes[position] >> 5) {
    case .unsigned:
      guard let number = Int64(exactly: try head(.unsigned)) else { throw Fault() }
      return .integer(number)
    case .negative:
      guard let number = Int64(exactly: try head(.negative)) else { throw Fault() }
      return .integer(-1 - number)
    case .text: return .string(try text())
    case .array:
      var values: [JSONValue] = []
      for _ in 0..<(try count(.array)) { values.append(try value(depth: depth + 1)) }
      return .array(values)
    case .map: return .object(try map(depth: depth))
    case .simple: return try simple()
    case .bytes, nil: throw Fault()
    }
  }

  private mutating func simple() throws(Fault) -> JSONValue {
    switch try byte() {
    case 0xF4: return .boolean(false)
    case 0xF5: return .boolean(true)
    case 0xF6: return .null
    case 0xFB:
      var bits: UInt64 = 0
      for _ in 0..<8 { bits = bits << 8 | UInt64(try byte()) }
      guard let number = JSONNumber(Double(bitPattern: bits)) else { throw Fault() }
      return .number(number)
    default: throw Fault()
    }
  }
}
