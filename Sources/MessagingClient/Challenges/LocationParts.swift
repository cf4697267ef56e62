/// The parts of a URL, or of a location pattern, as they were written.
struct LocationParts {
  /// The scheme; nil if the text has none.
  let scheme: Origin.Scheme?
  /// The scheme as it was written.
  let writtenScheme: Substring?
  /// What is before the `@`; nil without one.
  let userInfo: Substring?
  let host: String
  /// What follows the colon after the host; nil without one.
  let port: Substring?
  /// From the first `/`, `?` or `#` on; these three begin the path, the query and the fragment.
  let rest: Substring

  /// Splits a text.
  ///
  /// - Parameter defaultScheme: the scheme of a text that has none; nil refuses such a text.
  init(_ text: String, defaultScheme: Origin.Scheme?) throws(LocationError) {
    guard text.utf8.count <= Location.maximumByteCount else { throw .tooLong }
    guard text.utf8.allSatisfy(Self.isAllowed) else {
      throw .malformed(
        "a location consists of the characters of RFC 3986, the others are percent-encoded")
    }
    var remainder = text[...]
    if let mark = text.firstRange(of: "://"),
      !text[..<mark.lowerBound].utf8.contains(where: Self.endsScheme)
    {
      guard let named = Origin.Scheme(text: HostName.lowercased(text[..<mark.lowerBound])) else {
        throw .unknownScheme
      }
      scheme = named
      writtenScheme = text[..<mark.lowerBound]
      remainder = text[mark.upperBound...]
    } else {
      guard let defaultScheme else { throw .unknownScheme }
      scheme = defaultScheme
      writtenScheme = nil
    }
    let authorityEnd = remainder.firstIndex { "/?#".contains($0) } ?? remainder.endIndex
    rest = remainder[authorityEnd...]
    var authority = remainder[..<authorityEnd]
    if let mark = authority.firstIndex(of: "@") {
      userInfo = authority[..<mark]
      authority = authority[authority.index(after: mark)...]
    } else {
      userInfo = nil
    }
    // The colons of an IPv6 address are inside its brackets.
    let bracket = authority.lastIndex(of: "]") ?? authority.startIndex
    if let colon = authority[bracket...].firstIndex(of: ":") {
      port = authority[authority.index(after: colon)...]
      authority = authority[..<colon]
    } else {
      port = nil
    }
    host = String(authority)
    guard !host.isEmpty else { throw .malformed("the host is empty") }
  }

  /// The port as a number; nil if none was written.
  ///
  /// - Throws: `malformed` for what is no number from 1 to 65535.
  var portNumber: Int? {
    get throws(LocationError) {
      guard let port else { return nil }
      guard port.utf8.allSatisfy(HostName.isDigit), port.utf8.first != 0x30, port.utf8.count <= 5,
        let number = Int(port), (1...65535).contains(number)
      else { throw .malformed("a port is a number from 1 to 65535 without leading zeros") }
      return number
    }
  }

  /// The path as it was written; empty for none.
  var path: Substring {
    rest[..<(rest.firstIndex { $0 == "?" || $0 == "#" } ?? rest.endIndex)]
  }

  /// The written segments of ``path``; slashes at its end do not count.
  ///
  /// - Throws: `malformed` for an empty segment or a dot segment, which servers read in different ways.
  var segments: [Substring] {
    get throws(LocationError) {
      var path = path
      while path.last == "/" { path.removeLast() }
      if path.isEmpty { return [] }
      let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
      guard segments.allSatisfy({ !$0.isEmpty }) else {
        throw .malformed("a path has no empty segment")
      }
      for segment in segments where try [[0x2E], [0x2E, 0x2E]].contains(Self.decode(segment)) {
        throw .malformed("a path has no segment '.' or '..'")
      }
      return segments
    }
  }

  /// The written user, and the password if there is one that is not empty.
  ///
  /// - Throws: `malformed` for an empty user.
  var credentials: (user: Substring, password: Substring?)? {
    get throws(LocationError) {
      guard let userInfo else { return nil }
      let parts = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard let user = parts.first, !user.isEmpty else { throw .malformed("the user is empty") }
      let password = parts.count > 1 && !parts[1].isEmpty ? parts[1] : nil
      return (user, password)
    }
  }

  /// The bytes of a text without percent encoding.
  ///
  /// - Throws: `malformed` for an incomplete escape, or one of a control character.
  static func decode(_ text: Substring) throws(LocationError) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "-"),
        let value = UInt8(Substring(digits), radix: 16)
      else { throw .malformed("a percent sign is followed by two hexadecimal digits") }
      guard value >= 0x20, value != 0x7F else {
        throw .malformed("a location has no control character, also not percent-encoded")
      }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  /// Unreserved and reserved characters and `%` (RFC 3986, 2.2 and 2.3).
  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-._~:/?#[]@!$&'()*+,;=%".utf8.contains(byte)
    }
  }

  /// A `://` behind one of these is in the path or the query, and the text has no scheme.
  private static func endsScheme(_ byte: UInt8) -> Bool { "/?#@:".utf8.contains(byte) }
}
