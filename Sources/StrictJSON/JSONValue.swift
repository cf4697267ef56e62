/// A JSON value.
public enum JSONValue: Sendable, Hashable {
  /// `null`.
  case null
  /// `true` or `false`.
  case boolean(Bool)
  /// A number that was written without a fraction and an exponent, and fits 64 bits.
  case integer(Int64)
  /// Any other number.
  case number(JSONNumber)
  /// A string.
  case string(String)
  /// An array.
  case array([JSONValue])
  /// An object, in the order in which its members were written.
  case object([JSONMember])
}

/// A member of a JSON object.
public struct JSONMember: Sendable, Hashable {
  /// The name.
  public let name: String
  /// The value.
  public let value: JSONValue

  /// Makes a member.
  public init(_ name: String, _ value: JSONValue) {
    self.name = name
    self.value = value
  }
}

// What a value is; nil if it is something else.
extension JSONValue {
  /// The truth value.
  package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }

  /// The whole number.
  package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The string.
  package var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The elements of an array.
  package var elements: [JSONValue]? { if case .array(let values) = self { values } else { nil } }

  /// The members of an object.
  package var members: [JSONMember]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The value of an object's member; nil also if there is no such member.
  package func member(_ name: String) -> JSONValue? { members?[name] }
}

extension [JSONMember] {
  /// The value of the member with a name; nil if there is none.
  ///
  /// Names are compared by their bytes.
  package subscript(name: String) -> JSONValue? {
    first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }
}

// JSON text.
extension JSONValue {
  /// The value as JSON text without white space.
  public var text: String {
    var buffer: [UInt8] = []
    append(to: &buffer)
    return String(decoding: buffer, as: UTF8.self)
  }

  /// Appends the value as JSON text without white space.
  package func append(to buffer: inout [UInt8]) {
    switch self {
    case .null: buffer += "null".utf8
    case .boolean(let value): buffer += (value ? "true" : "false").utf8
    case .integer(let value): buffer += String(value).utf8
    case .number(let value): buffer += value.text.utf8
    case .string(let value): JSONText.append(quoting: value, to: &buffer)
    case .array(let values):
      buffer.append(UInt8(ascii: "["))
      for (index, value) in values.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        value.append(to: &buffer)
      }
      buffer.append(UInt8(ascii: "]"))
    case .object(let members):
      buffer.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { buffer.append(UInt8(ascii: ",")) }
        JSONText.append(quoting: member.name, to: &buffer)
        buffer.append(UInt8(ascii: ":"))
        member.value.append(to: &buffer)
      }
      buffer.append(UInt8(ascii: "}"))
    }
  }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// A string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// A whole number.
  public init(integerLiteral value: Int64) { self = .integer(value) }
  /// `true` or `false`.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// An array.
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// An object, in the order of the literal.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { JSONMember($0.0, $0.1) })
  }
}
