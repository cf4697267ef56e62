/// Reads JSON texts (RFC 8259) into values, strictly.
///
/// The reader refuses what readers of JSON interpret differently: two members with one name, half
/// a surrogate pair, a byte order mark, bytes that are not UTF-8, and numbers that a Double cannot
/// hold.
package struct JSONReader {
  /// The greatest depth that a caller can ask for.
  ///
  /// Reading and writing a value take a call for each level.
  package static let maximumDepth = 256

  private var scanner: JSONScanner

  private init(_ bytes: [UInt8], maximumDepth: Int) throws(JSONFault) {
    precondition(maximumDepth <= Self.maximumDepth, "a tree of JSON would be too deep")
    scanner = try JSONScanner(bytes, maximumDepth: maximumDepth)
  }

  /// Reads a text that has one value.
  ///
  /// - Parameter maximumDepth: how many objects and arrays can be inside one another.
  /// - Throws: the first fault in the text.
  package static func value(
    _ bytes: [UInt8], maximumDepth: Int = JSONText.maximumDepth
  ) throws(JSONFault) -> JSONValue {
    var reader = try JSONReader(bytes, maximumDepth: maximumDepth)
    let value = try reader.value()
    try reader.scanner.end()
    return value
  }

  /// Reads a text that has one object.
  ///
  /// - Returns: the members in their order, each name once.
  /// - Throws: the first fault in the text; `notAnObject` for another value or no value.
  package static func object(
    _ bytes: [UInt8], maximumDepth: Int = JSONText.maximumDepth
  ) throws(JSONFault) -> [JSONMember] {
    var reader = try JSONReader(bytes, maximumDepth: maximumDepth)
    guard reader.scanner.isAtObject else { throw JSONFault(reason: .notAnObject, offset: 0) }
    _ = try reader.scanner.next()
    let members = try reader.members()
    try reader.scanner.end()
    return members
  }

  private mutating func value() throws(JSONFault) -> JSONValue { try value(scanner.next()) }

  /// The value that begins with a token.
  private mutating func value(_ token: JSONScanner.Token?) throws(JSONFault) -> JSONValue {
    switch token {
    case .beginObject: return .object(try members())
    case .beginArray:
      var values: [JSONValue] = []
      while case let token = try scanner.next(), token != .endArray {
        values.append(try value(token))
      }
      return .array(values)
    case .string: return .string(try string())
    case .number: return try number()
    case .boolean(let value): return .boolean(value)
    case .null: return .null
    case .name, .endObject, .endArray, nil:
      preconditionFailure("the scanner gives such a token only within an object or array")
    }
  }

  private mutating func members() throws(JSONFault) -> [JSONMember] {
    var members: [JSONMember] = []
    // By their bytes: names that only look alike are different names.
    var names: Set<[UInt8]> = []
    while try scanner.next() == .name {
      let offset = scanner.range.lowerBound
      let name = try string()
      guard names.insert(Array(name.utf8)).inserted else {
        throw JSONFault(reason: .memberTwice, offset: offset)
      }
      members.append(JSONMember(name, try value()))
    }
    return members
  }

  private func string() throws(JSONFault) -> String {
    guard let bytes = JSONText.decode(scanner.bytes[scanner.range]) else {
      throw JSONFault(reason: .halfPair, offset: scanner.range.lowerBound)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private func number() throws(JSONFault) -> JSONValue {
    let text = String(decoding: scanner.bytes[scanner.range], as: UTF8.self)
    // An integer has no sign of zero.
    if let integer = Int64(text), text != "-0" { return .integer(integer) }
    guard let number = JSONNumber(checked: text) else {
      throw JSONFault(reason: .numberOutOfRange, offset: scanner.range.lowerBound)
    }
    return .number(number)
  }
}
