internal import VaultCrypto

/// A location or a pattern as lists of tokens, one list for each kind.
///
/// A token of one kind never matches a token of another kind.
struct LocationTokens: Sendable, Hashable {
  enum Token: Sendable, Hashable {
    /// `*` in a pattern.
    case any
    /// A host label as written, a port, or a user or path segment without percent encoding.
    case text([UInt8])
    case password(KeptPassword)
  }

  /// The labels of the host from the last to the first.
  var host: [Token]
  /// The port, also where the scheme implies it.
  var port: Token
  /// The user, and then the password.
  var userInfo: [Token]
  var path: [Token]

  static func port(_ number: Int) -> Token { .text(Array(String(number).utf8)) }

  /// The tokens of a user and a password.
  ///
  /// - Parameter isPattern: whether `*` stands for any token.
  static func userInfo(_ parts: LocationParts, isPattern: Bool) throws(LocationError) -> [Token] {
    guard let (user, password) = try parts.credentials else { return [] }
    let name = isPattern && user == "*" ? Token.any : .text(try LocationParts.decode(user))
    guard let password else { return [name] }
    return [
      name,
      isPattern && password == "*"
        ? .any : .password(KeptPassword(try LocationParts.decode(password))),
    ]
  }

  /// The tokens of a path; what follows an escape `%2F` or `%2A` is neither a separator nor a wildcard.
  static func path(_ parts: LocationParts, isPattern: Bool) throws(LocationError) -> [Token] {
    var tokens: [Token] = []
    for segment in try parts.segments {
      tokens.append(isPattern && segment == "*" ? .any : .text(try LocationParts.decode(segment)))
    }
    return tokens
  }
}

/// The password of a URL, in memory that is wiped with the last reference.
final class KeptPassword: Sendable, Hashable {
  private let bytes: SecretBytes

  /// Takes the bytes and wipes the array.
  init(_ bytes: consuming [UInt8]) {
    self.bytes = unsafe SecretBytes(copying: bytes.span.bytes)
    wipe(&bytes)
  }

  static func == (a: KeptPassword, b: KeptPassword) -> Bool {
    SecretBytes.isEqual(a.bytes, b.bytes)
  }

  /// A hash would tell something of the password.
  func hash(into hasher: inout Hasher) {}
}
