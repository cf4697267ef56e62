/// Reads the challenges of one field.
///
/// The elements of its list belong to challenges: `name=value` to the challenge before it, and everything else begins a
/// new one.
struct ChallengeReader {
  private let bytes: [UInt8]
  private var position = 0

  /// What was wrong, if reading ended before the end of the field.
  private(set) var fault: String?

  private struct Fault: Error {
    let what: String
  }

  init(_ field: String) { bytes = Array(field.utf8) }

  /// The challenges up to the first fault.
  mutating func read() -> [Challenge] {
    guard !bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else {
      fault = "a field has a control character"
      return []
    }
    var complete: [Challenge] = []
    var current: Challenge?
    do throws(Fault) {
      while skipSeparators() {
        if let name = parameterName() {
          guard var challenge = current, challenge.token68 == nil, challenge.extraWords.isEmpty
          else {
            current = nil
            throw Fault(what: "a parameter belongs to no challenge")
          }
          current = nil
          try readParameter(name, into: &challenge)
          try readExtraWords(into: &challenge)
          current = challenge
        } else {
          if let challenge = current { complete.append(challenge) }
          current = nil
          guard complete.count <= ChallengeList.maximumChallengeCount else { return complete }
          current = try readChallenge()
        }
        try expectSeparator()
      }
    } catch {
      fault = error.what
      return complete
    }
    if let challenge = current { complete.append(challenge) }
    return complete
  }

  /// A scheme and what follows it up to the next comma.
  private mutating func readChallenge() throws(Fault) -> Challenge {
    guard let word = token() else { throw Fault(what: "a challenge begins without a scheme") }
    var name = word
    if HostName.lowercased(word) == "application", let second = secondWord() {
      name += " \(second)"
    }
    var challenge = Challenge(Challenge.Scheme(name))
    guard skipSpaces() > 0, !isAtElementEnd else { return challenge }
    if let name = parameterName() {
      try readParameter(name, into: &challenge)
    } else if let data = token68() {
      challenge.token68 = data
    } else {
      throw Fault(what: "a challenge has neither parameters nor data")
    }
    try readExtraWords(into: &challenge)
    return challenge
  }

  /// `Basic`, `Token` or `Negotiate` behind `Application`: schemes of two words, which are not in the grammar.
  private mutating func secondWord() -> String? {
    let start = position
    if skipSpaces() > 0, let word = token(),
      ["basic", "token", "negotiate"].contains(HostName.lowercased(word))
    {
      // `Application Basic=x` has a parameter, and `Application Basic/x` has data.
      let end = position
      let spaces = skipSpaces()
      if isAtElementEnd || (spaces > 0 && peek != UInt8(ascii: "=")) {
        position = end
        return word
      }
    }
    position = start
    return nil
  }

  /// The name of a parameter, if there is one here; the position is then behind its `=`.
  ///
  /// `name=` without a value is data by the grammar: the padding of a token68.
  private mutating func parameterName() -> String? {
    let start = position
    if let name = token() {
      skipSpaces()
      if take("=") {
        skipSpaces()
        if let next = peek, next == UInt8(ascii: "\"") || Self.isTokenByte(next) { return name }
      }
    }
    position = start
    return nil
  }

  private mutating func readParameter(_ name: String, into challenge: inout Challenge) throws(Fault)
  {
    let name = HostName.lowercased(name)
    let value: String
    if peek == UInt8(ascii: "\"") {
      value = try quotedString()
    } else if let text = token() {
      value = text
    } else {
      throw Fault(what: "a parameter has no value")
    }
    guard challenge[name] == nil else { throw Fault(what: "a parameter occurs twice") }
    guard challenge.parameters.count < ChallengeList.maximumParameterCount else {
      throw Fault(
        what: "a challenge has more than \(ChallengeList.maximumParameterCount) parameters")
    }
    challenge.parameters.append(Challenge.Parameter(name: name, value: value))
  }

  /// The words of Kaazing's gateway: after a realm that is the last parameter, or after the data of a scheme of two
  /// words.
  private mutating func readExtraWords(into challenge: inout Challenge) throws(Fault) {
    let isTolerant =
      challenge.token68 == nil
      ? challenge.parameters.last?.name == "realm" : challenge.scheme.description.contains(" ")
    guard isTolerant else { return }
    while true {
      let end = position
      guard skipSpaces() > 0, !isAtElementEnd else {
        position = end
        return
      }
      guard challenge.extraWords.count < ChallengeList.maximumParameterCount else {
        throw Fault(
          what: "a challenge has more than \(ChallengeList.maximumParameterCount) extra words")
      }
      let start = position
      if let name = parameterName() {
        // A word that looks like a parameter must not look like a second value of one.
        guard challenge[name] == nil else { throw Fault(what: "a parameter occurs twice") }
        if peek == UInt8(ascii: "\"") { _ = try quotedString() } else { _ = token() }
      } else if peek == UInt8(ascii: "\"") {
        _ = try quotedString()
      } else if token68() == nil {
        throw Fault(what: "an extra word is neither a token nor quoted")
      }
      challenge.extraWords.append(String(decoding: bytes[start..<position], as: UTF8.self))
    }
  }

  /// A quoted string without its escapes.
  private mutating func quotedString() throws(Fault) -> String {
    position += 1
    var value: [UInt8] = []
    while let byte = peek {
      position += 1
      if byte == UInt8(ascii: "\"") { return String(decoding: value, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        value.append(byte)
        continue
      }
      guard let escaped = peek else { break }
      value.append(escaped)
      position += 1
    }
    throw Fault(what: "a quoted string does not end")
  }

  private mutating func token() -> String? { word(Self.isTokenByte) }

  private mutating func token68() -> String? {
    let start = position
    guard word(Self.isToken68Byte) != nil else { return nil }
    while take("=") {}
    // Data ends with its word.
    guard isAtElementEnd || peek == 0x20 || peek == 0x09 else {
      position = start
      return nil
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func word(_ isPart: (UInt8) -> Bool) -> String? {
    let word = bytes[position...].prefix(while: isPart)
    guard !word.isEmpty else { return nil }
    position = word.endIndex
    return String(decoding: word, as: UTF8.self)
  }

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  /// Whether a comma or the end of the field comes next.
  private var isAtElementEnd: Bool { peek == nil || peek == UInt8(ascii: ",") }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  /// Skips spaces and tabs, and returns their number.
  @discardableResult
  private mutating func skipSpaces() -> Int {
    let start = position
    while peek == 0x20 || peek == 0x09 { position += 1 }
    return position - start
  }

  /// Skips commas and spaces to the next element; false at the end of the field.
  private mutating func skipSeparators() -> Bool {
    repeat { skipSpaces() } while take(",")
    return peek != nil
  }

  private mutating func expectSeparator() throws(Fault) {
    skipSpaces()
    guard isAtElementEnd else { throw Fault(what: "a challenge continues without a comma") }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    HostName.isDigit(byte) || (0x61...0x7A).contains(byte | 0x20)
  }

  /// RFC 9110, 5.6.2.
  static func isTokenByte(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
  }

  /// RFC 9110, 11.2, without the padding.
  static func isToken68Byte(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || "-._~+/".utf8.contains(byte)
  }
}
