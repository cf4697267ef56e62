/// Writes the fields of a record, big endian.
package struct RecordWriter {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  package mutating func append(_ byte: UInt8) { bytes.append(byte) }

  package mutating func append(_ raw: [UInt8]) { bytes += raw }

  package mutating func append<Number: FixedWidthInteger & UnsignedInteger>(_ number: Number) {
    var shift = Number.bitWidth
    while shift > 0 {
      shift -= 8
      bytes.append(UInt8(truncatingIfNeeded: number >> Number(shift)))
    }
  }

  package mutating func append<Kind>(_ identifier: Identifier<Kind>) { append(identifier.value) }

  package mutating func append(_ number: RecordNumber) {
    append(number.author)
    append(number.number)
  }

  package mutating func append(_ origin: MessageOrigin) {
    append(origin.record)
    append(origin.index)
  }

  /// Writes the length in two bytes, then UTF-8: of a longer text, the characters that have room.
  package mutating func append(_ text: String) {
    var utf8 = Array(text.utf8)
    if utf8.count > UInt16.max {
      var count = Int(UInt16.max)
      // Not within a character: the text would be no UTF-8 for its readers.
      while UTF8.isContinuation(utf8[count]) { count -= 1 }
      utf8.removeLast(utf8.count - count)
    }
    append(UInt16(utf8.count))
    append(utf8)
  }

  /// Writes the length in four bytes, then the bytes.
  package mutating func appendBlock(_ block: [UInt8]) {
    append(UInt32(block.count))
    append(block)
  }

  /// Writes a byte that says whether there is a value, then the value.
  package mutating func appendOptional<Value>(
    _ value: Value?, _ write: (inout RecordWriter, Value) -> Void
  ) {
    append(UInt8(value == nil ? 0 : 1))
    if let value { write(&self, value) }
  }
}
