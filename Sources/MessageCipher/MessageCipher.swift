public import VaultCrypto

/// Encrypts and decrypts the messages of clients; the server that carries them has no key.
///
/// A cipher writes one form, and reads that form and those for which it was given keys. It refuses
/// every other form, so that an authenticated message cannot be replaced by a legacy one.
///
/// ```swift
/// let cipher = try MessageCipher(key: key)
/// let message = try cipher.encrypt(#"{"text":"two books"}"#.utf8, channel: "orders")
/// let json = try cipher.decrypt(message, channel: "orders").bytes
/// ```
///
/// All tasks can use a cipher at the same time. Its keys are wiped with the last copy of it and of
/// its ``Key`` values. Plaintexts are arrays, which are not wiped.
///
/// Format: `docs/reference/encrypted-message-format.md`.
public struct MessageCipher: Sendable {
  /// The maximum size of a plaintext in bytes: 16 MiB.
  public static let maximumPlaintextByteCount = 16 << 20
  /// The maximum size of the JSON text of a message in bytes: 32 MiB.
  public static let maximumTextByteCount = 32 << 20
  /// The maximum size of a channel's name in bytes of UTF-8.
  public static let maximumChannelByteCount = 1024
  /// The maximum size of a member's name in bytes of UTF-8.
  public static let maximumMemberByteCount = 1024

  private let writer: Key
  private let readers: Readers

  /// Makes a cipher that writes and reads only the authenticated form, under one key.
  ///
  /// - Parameter key: 32 random bytes, as `SecretBytes.random(byteCount: 32)` makes them.
  /// - Throws: `invalidArgument` for a key of another length; `libraryFailure`.
  public init(key: borrowing SecretBytes) throws(MessageCipherError) {
    try self.init(writing: Key(.xaes256GCM, key))
  }

  /// Makes a cipher that writes under one key, and reads messages under it and under other keys.
  ///
  /// Each of the others weakens the cipher to what its form protects. Remove it as soon as no
  /// message under it has to be read.
  ///
  /// - Parameters:
  ///   - key: encrypts all messages.
  ///   - others: older keys, and keys of other forms, whose messages are still read. Any number can
  ///     be of the form ``Form/xaes256GCM``, but only one of ``Form/aesCBC`` and one of the two
  ///     legacy forms, because their messages do not say under which key they are.
  /// - Throws: `invalidArgument` for keys whose messages cannot be told apart.
  public init(writing key: Key, alsoReading others: [Key] = []) throws(MessageCipherError) {
    writer = key
    readers = try Readers([key] + others)
  }

  /// A plaintext, and the form in which it came.
  public struct Decrypted: Sendable {
    /// The plaintext: JSON text in UTF-8, or the bytes of ``MessageCipher/decrypt(bytes:channel:)``.
    public let bytes: [UInt8]

    /// The form of the encrypted message.
    ///
    /// Unless ``Form/isAuthenticated`` is true, the server or anyone between could have changed the
    /// message.
    public let form: Form
  }

  /// Encrypts bytes without base64: a file, for example.
  ///
  /// - Parameters:
  ///   - bytes: at most 16 MiB.
  ///   - channel: the reader must give the same name, 1 to 1024 bytes. The forms of PubNub are not
  ///     bound to it.
  /// - Throws: `tooLarge`, `invalidArgument`, `libraryFailure`.
  public func encrypt(
    bytes: some Collection<UInt8>, channel: String
  ) throws(MessageCipherError) -> [UInt8] {
    try seal(Array(bytes), Binding(channel: channel, place: .bytes))
  }

  /// Decrypts the result of ``encrypt(bytes:channel:)``.
  ///
  /// - Throws: `notEncrypted`, `unknownCryptor`, `formRefused`, `unknownKey`, `tooLarge`,
  ///   `invalidArgument`, `libraryFailure`, and `decryptionFailed` for every other reason.
  public func decrypt(
    bytes: some Collection<UInt8>, channel: String
  ) throws(MessageCipherError) -> Decrypted {
    try open(Array(bytes), Binding(channel: channel, place: .bytes))
  }

  func seal(_ plaintext: [UInt8], _ binding: Binding) throws(MessageCipherError) -> [UInt8] {
    guard plaintext.count <= Self.maximumPlaintextByteCount else {
      throw .tooLarge("plaintext", plaintext.count, limit: Self.maximumPlaintextByteCount)
    }
    do throws(CryptoError) {
      return try writer.cryptor.seal(plaintext, binding)
    } catch {
      throw .library(error)
    }
  }

  func open(_ sealed: [UInt8], _ binding: Binding) throws(MessageCipherError) -> Decrypted {
    guard sealed.count <= SealedMessage.maximumByteCount else {
      throw .tooLarge("message", sealed.count, limit: SealedMessage.maximumByteCount)
    }
    let message = try SealedMessage(parsing: sealed, on: binding.channel)
    let cryptor = try readers.cryptor(for: message, on: binding.channel)
    do throws(CryptoError) {
      return Decrypted(bytes: try cryptor.open(message, binding), form: cryptor.form)
    } catch {
      // One error for all reasons: a wrong tag, a wrong length, wrong padding.
      guard error.code == .libraryFailure else { throw .decryptionFailed(on: binding.channel) }
      throw .library(error)
    }
  }
}
