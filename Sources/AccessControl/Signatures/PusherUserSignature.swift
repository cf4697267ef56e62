public import VaultCrypto

/// What this server's authorization endpoint answers for a user: an `auth` of the form `KEY:USER.CODE`.
///
/// USER is the user's name in base64url. CODE is HMAC-SHA-256 in hexadecimal digits, over the version of the user's
/// password and `SOCKET_ID:CHANNEL:USER`, under a key of its own: HKDF of the secret key with the purpose
/// `datavault pusher user 1`, a space and the application's id. So it is none of Pusher's signatures, and it ends with
/// the password. Other than those it gives no right: it says which user subscribes, and the user's rights decide.
public struct PusherUserSignature: Sendable, Hashable {
  /// The user that it names, before ``authorizes(password:socketID:channel:under:)`` has confirmed it.
  public let user: Name

  private let code: [UInt8]

  /// Nil for a text of another form, or with the key of another application.
  public init?(_ auth: String, of application: Application) {
    guard auth.utf8.starts(with: "\(application.subscribeKey):".utf8) else { return nil }
    let parts = auth.utf8.dropFirst(application.subscribeKey.utf8.count + 1)
      .split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 2, let bytes = Base64.decode(parts[0], alphabet: .url),
      let user = String(validating: bytes, as: UTF8.self).flatMap({ try? Name($0) })
    else { return nil }
    self.user = user
    code = Array(parts[1])
  }

  /// Signs a channel for a connection of a user.
  ///
  /// - Parameters:
  ///   - password: the one that was checked.
  ///   - socketID: has no colon, as the names of Pusher's channels have none.
  /// - Throws: an error of OpenSSL.
  public static func sign(
    _ user: Name, password: PasswordVersion, socketID: String, channel: ChannelName,
    under application: Application
  ) throws(CryptoError) -> String {
    let code = try code(user, password, socketID, channel, application)
    let name = Base64.encode(Array(user.text.utf8), padded: false)
    return "\(application.subscribeKey):\(name).\(code)"
  }

  /// Whether the user was authorized for a channel and a connection.
  ///
  /// - Parameter password: the user's password of now.
  /// - Throws: an error of OpenSSL.
  public func authorizes(
    password: PasswordVersion, socketID: String, channel: ChannelName,
    under application: Application
  ) throws(CryptoError) -> Bool {
    let expected = Array(
      try Self.code(user, password, socketID, channel, application).utf8)
    return unsafe isEqualInConstantTime(expected.span.bytes, code.span.bytes)
  }

  private static func code(
    _ user: Name, _ password: PasswordVersion, _ socketID: String, _ channel: ChannelName,
    _ application: Application
  ) throws(CryptoError) -> String {
    let key = try application.secretKey.derivedKey("datavault pusher user 1 \(application.id)")
    // The version has a fixed length, and the user, which can have colons, is the last.
    let message = password.salt + "\(socketID):\(channel.text):\(user.text)".utf8
    return unsafe try HMAC.sha256(key: key, message: message.span.bytes).hexadecimal
  }
}
