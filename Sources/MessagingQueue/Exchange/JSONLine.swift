/// A JSON object on one line, read strictly: RFC 8259 and no more.
///
/// Refused are what readers of JSON disagree about, and what no writer means: two members of one name,
/// commas at the end, a byte order mark, bytes that are not UTF-8, half a surrogate pair, anything after
/// the object, and objects and arrays nested deeper than ``JSONLineParser/maximumDepth``.
package struct JSONLine: Sendable {
  /// The members in their order, each name once.
  package let members: [(name: String, value: JSONValue)]

  /// Reads a line without its newline.
  ///
  /// - Throws: ``JSONFault``, which never quotes what it found.
  package init(_ line: [UInt8]) throws(JSONFault) {
    var parser = JSONLineParser(line)
    members = try parser.line()
  }

  /// Whether a line is nothing but white space.
  package static func isBlank(_ line: [UInt8]) -> Bool {
    line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
  }

  /// A member that is there and is not null.
  package subscript(name: String) -> JSONValue? {
    JSONValue.member(name, of: members)
  }
}

/// A value of JSON.
package indirect enum JSONValue: Sendable {
  case null
  case boolean(Bool)
  /// As it stands in the text: what it means is for whoever wants it.
  case number(String)
  case string(String)
  case array([JSONValue])
  /// Each name once.
  case object([(name: String, value: JSONValue)])

  /// The text of a string.
  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// A whole number without fraction or exponent.
  package var wholeNumber: Int? { if case .number(let text) = self { Int(text) } else { nil } }

  /// True or false.
  package var truth: Bool? { if case .boolean(let value) = self { value } else { nil } }

  /// The elements of an array.
  package var elements: [JSONValue]? { if case .array(let values) = self { values } else { nil } }

  /// The members of an object.
  package var members: [(name: String, value: JSONValue)]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// A member of an object that is there and is not null.
  package subscript(name: String) -> JSONValue? {
    members.flatMap { Self.member(name, of: $0) }
  }

  static func member(_ name: String, of members: [(name: String, value: JSONValue)]) -> JSONValue? {
    guard let value = members.first(where: { $0.name.utf8.elementsEqual(name.utf8) })?.value
    else { return nil }
    if case .null = value { return nil }
    return value
  }
}

/// Why a line is no JSON object: the end of a sentence about it, without a byte of its contents.
package struct JSONFault: Error, Sendable, CustomStringConvertible {
  /// What is wrong.
  package let reason: String
  /// The byte of the line where that was noticed; the first is 1.
  package let column: Int

  /// The reason and the place.
  package var description: String { "\(reason) at byte \(column)" }
}
