public import VaultCrypto

/// An auth key as tables and the index hold it: HMAC-SHA-256 under a key of the server.
///
/// The hash includes the application, so that the same auth key in two applications has two hashes
/// that nothing links. Without the server's key, a stolen table does not confirm a guess.
public struct AuthKeyHash: Sendable, Hashable, CustomStringConvertible {
  /// The length of a hash in bytes.
  public static let byteCount = 32

  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// Takes the bytes of a stored hash; nil unless there are 32.
  public init?(stored bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    func word(_ start: Int) -> UInt64 {
      bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }
    words = (word(0), word(8), word(16), word(24))
  }

  /// The bytes, for a table.
  public var bytes: [UInt8] {
    [words.0, words.1, words.2, words.3].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
    }
  }

  /// Whether all bytes are the same.
  public static func == (a: AuthKeyHash, b: AuthKeyHash) -> Bool {
    (a.words.0 ^ b.words.0) | (a.words.1 ^ b.words.1) | (a.words.2 ^ b.words.2)
      | (a.words.3 ^ b.words.3) == 0
  }

  /// Hashes the first 8 bytes, which are as random as all.
  public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }

  /// The first 8 digits, which tell hashes apart in a list and reveal nothing of the key.
  public var description: String { String(bytes.hexadecimal.prefix(8)) }
}

/// Makes hashes of auth keys under the server's key.
public final class AuthKeyHasher: Sendable {
  /// The longest auth key, in bytes.
  public static let maximumByteCount = 512

  private let key: SecretBytes

  /// Takes a random key of 32 bytes, which must be the same for the life of the tables.
  public init(key: consuming SecretBytes) { self.key = key }

  /// The hash of an auth key of an application: HMAC-SHA-256 over the id as 8 bytes, most
  /// significant first, and the auth key.
  ///
  /// - Throws: an error of OpenSSL.
  public func hash(
    _ authKey: [UInt8], of application: ApplicationID
  ) throws(CryptoError) -> AuthKeyHash {
    let message = application.bytes + authKey
    let code = unsafe try HMAC.sha256(key: key, message: message.span.bytes)
    guard let hash = AuthKeyHash(stored: code) else {
      throw CryptoError(.libraryFailure, in: "HMAC")
    }
    return hash
  }
}
