package import StrictJSON

/// A JSON object on one line, read strictly by RFC 8259.
package struct JSONLine: Sendable {
  /// How many objects and arrays can be inside one another.
  private static let maximumDepth = 32

  /// The members in their order, each name once.
  package let members: [JSONMember]

  /// Reads a line without its newline.
  ///
  /// - Throws: the fault, which never quotes what it found.
  package init(_ line: [UInt8]) throws(JSONFault) {
    members = try JSONReader.object(line, maximumDepth: Self.maximumDepth)
  }

  /// Whether a line is nothing but white space.
  package static func isBlank(_ line: [UInt8]) -> Bool {
    line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
  }

  /// A member that exists and is not null.
  package subscript(name: String) -> JSONValue? {
    members[name].flatMap { $0 == .null ? nil : $0 }
  }
}
