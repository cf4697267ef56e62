/// Reads the fields of a record, and refuses what goes beyond its end.
package struct RecordReader {
  private let bytes: [UInt8]
  private var offset = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var isAtEnd: Bool { offset == bytes.count }

  package mutating func raw(_ count: Int) throws(RecordError) -> [UInt8] {
    guard count >= 0, count <= bytes.count - offset else { throw RecordError.truncated }
    defer { offset += count }
    return Array(bytes[offset..<offset + count])
  }

  package mutating func rest() -> [UInt8] {
    defer { offset = bytes.count }
    return Array(bytes[offset...])
  }

  package mutating func byte() throws(RecordError) -> UInt8 {
    guard offset < bytes.count else { throw RecordError.truncated }
    defer { offset += 1 }
    return bytes[offset]
  }

  package mutating func number<Number: FixedWidthInteger & UnsignedInteger>(
    _: Number.Type = Number.self
  ) throws(RecordError) -> Number {
    let count = Number.bitWidth / 8
    guard count <= bytes.count - offset else { throw RecordError.truncated }
    var value: Number = 0
    for index in offset..<offset + count {
      value = value << 8 | Number(truncatingIfNeeded: bytes[index])
    }
    offset += count
    return value
  }

  package mutating func identifier<Kind>() throws(RecordError) -> Identifier<Kind> {
    Identifier(try number(UInt128.self))
  }

  package mutating func recordNumber() throws(RecordError) -> RecordNumber {
    RecordNumber(try identifier(), try number())
  }

  package mutating func origin() throws(RecordError) -> MessageOrigin {
    MessageOrigin(try recordNumber(), try number())
  }

  package mutating func text() throws(RecordError) -> String {
    let utf8 = try raw(Int(try number(UInt16.self)))
    guard let text = String(validating: utf8, as: UTF8.self) else { throw RecordError.invalidText }
    return text
  }

  package mutating func block() throws(RecordError) -> [UInt8] {
    try raw(Int(try number(UInt32.self)))
  }

  package mutating func flag() throws(RecordError) -> Bool {
    switch try byte() {
    case 0: false
    case 1: true
    default: throw RecordError.invalidFlag
    }
  }

  package mutating func optional<Value>(
    _ read: (inout RecordReader) throws(RecordError) -> Value
  ) throws(RecordError) -> Value? {
    try flag() ? try read(&self) : nil
  }
}

/// Why a record cannot be read, although it was opened.
package struct RecordError: Error, Sendable, Hashable {
  /// What is wrong.
  package let reason: String

  package static let truncated = RecordError(reason: "a record ends before its last field")
  package static let trailing = RecordError(reason: "a record goes on after its last field")
  package static let invalidText = RecordError(reason: "a text of a record is not UTF-8")
  package static let invalidFlag = RecordError(reason: "a flag of a record is neither 0 nor 1")
  package static let outOfRange = RecordError(reason: "a number of a record is out of range")
  package static let unknownKind = RecordError(
    reason: "a record is of a kind that this version does not know")
  package static let unknownVersion = RecordError(
    reason: "a record has a format version that this version does not know")
  package static let tooManyParts = RecordError(reason: "a commit has more parts than allowed")
}
