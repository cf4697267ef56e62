public import VaultCrypto

/// A password on its way to the check: in memory that is wiped with the last reference.
public final class Password: Sendable {
  let bytes: SecretBytes

  /// Takes the bytes of a password.
  public init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
}

/// What a request's `Authorization` fields say (RFC 9110, 11.6.2), whatever the protocol around them.
public enum Authorization: Sendable {
  /// `Basic` (RFC 7617) or `Application Basic`: a user and a password.
  case password(user: Name, Password)
  /// `Application Token`: the text of a token.
  case token([UInt8])
  /// A scheme that no resource takes.
  case otherScheme
  /// Not in the grammar, or not within its limits.
  case malformed

  /// The longest field, in bytes: the largest token in base64.
  public static let maximumByteCount = 22_000

  /// The longest password, in bytes.
  public static let maximumPasswordByteCount = 1024

  /// Reads the fields of a request; nil if there are none.
  ///
  /// A request has one such field. Several are malformed, because two readers could take two users.
  public static func read(_ fields: [String]) -> Authorization? {
    guard let field = fields.first else { return nil }
    guard fields.count == 1, field.utf8.count <= maximumByteCount else { return .malformed }
    return read(field.utf8)
  }

  private static func read(_ field: String.UTF8View) -> Authorization {
    // Only spaces stand between the parts: RFC 9110, 11.4.
    var words = field.split(separator: UInt8(ascii: " "))[...]
    guard let first = words.popFirst() else { return .malformed }
    var scheme = lowercased(first)
    // The schemes of two words are not in the grammar, so they are read by a rule of their own.
    if scheme == "application", words.count > 1, let second = words.popFirst() {
      scheme += " " + lowercased(second)
    }
    guard scheme.utf8.allSatisfy({ isToken68($0) || $0 == UInt8(ascii: " ") }) else {
      return .malformed
    }
    switch scheme {
    case "basic", "application basic":
      guard words.count == 1, let text = words.first, isToken68(text) else { return .malformed }
      return basic(text)
    case "application token":
      guard words.count == 1, let text = words.first, isToken68(text) else { return .malformed }
      return .token(Array(text))
    default: return .otherScheme
    }
  }

  /// The user and the password of `base64(user ":" password)` in UTF-8.
  private static func basic(_ text: Substring.UTF8View) -> Authorization {
    guard var bytes = Base64.decode(text, alphabet: .both) else { return .malformed }
    defer { wipe(&bytes) }
    // The first colon ends the user: a password can have colons.
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), isUTF8(bytes),
      !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }),
      let user = String(validating: bytes[..<colon], as: UTF8.self).flatMap({ try? Name($0) }),
      bytes.count - colon - 1 <= maximumPasswordByteCount
    else { return .malformed }
    return .password(
      user: user,
      Password(
        unsafe SecretBytes(copying: bytes.span.extracting((colon + 1)...).bytes)))
  }

  /// Whether bytes are UTF-8, found out without a copy of them.
  private static func isUTF8(_ bytes: [UInt8]) -> Bool {
    do {
      _ = try UTF8Span(validating: bytes.span)
      return true
    } catch {
      return false
    }
  }

  private static func lowercased(_ word: Substring.UTF8View) -> String {
    String(
      decoding: word.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }

  private static func isToken68(_ text: Substring.UTF8View) -> Bool {
    let characters = text.reversed().drop { $0 == UInt8(ascii: "=") }
    return !characters.isEmpty && characters.allSatisfy(isToken68)
  }

  private static func isToken68(_ character: UInt8) -> Bool {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~+/".utf8.contains(character)
    }
  }
}

/// A challenge of a 401, as the value of one `WWW-Authenticate` field (RFC 9110, 11.6.1).
public struct Challenge: Sendable, Hashable {
  /// The schemes that this server takes.
  public enum Scheme: String, Sendable, CaseIterable {
    /// RFC 7617, which browsers and HTTP libraries answer themselves.
    case basic = "Basic"
    /// The same for WebSocket clients, whose platform must not answer.
    case applicationBasic = "Application Basic"
    /// A token of this server.
    case applicationToken = "Application Token"
  }

  let scheme: Scheme
  let realm: String

  /// Makes a challenge.
  ///
  /// - Parameter realm: the application's name.
  public init(_ scheme: Scheme, realm: String) {
    self.scheme = scheme
    self.realm = realm
  }

  /// All challenges of a realm.
  ///
  /// Each goes into a field of its own, `Basic` into the first one: some clients read only the first
  /// field, and take a list in one field for one challenge.
  public static func all(realm: String) -> [Challenge] {
    Scheme.allCases.map { Challenge($0, realm: realm) }
  }

  /// The value of the field.
  ///
  /// The realm is its last parameter, because some clients read it up to the last quotation mark.
  public var field: String {
    var quoted = ""
    for scalar in realm.unicodeScalars where scalar.value >= 0x20 && scalar.value != 0x7F {
      if scalar == "\"" || scalar == "\\" { quoted += "\\" }
      quoted.unicodeScalars.append(scalar)
    }
    let charset = scheme == .applicationToken ? "" : #"charset="UTF-8", "#
    return "\(scheme.rawValue) \(charset)realm=\"\(quoted)\""
  }
}
