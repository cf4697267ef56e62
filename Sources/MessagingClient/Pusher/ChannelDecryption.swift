public import VaultCrypto

/// Decrypts the events of Pusher's encrypted channels, whose names begin with `private-encrypted-`.
///
/// This library has no XSalsa20: the module PusherEncryption, or the application, implements the protocol.
public protocol ChannelDecryption: Sendable {
  /// Decrypts the data of an event.
  ///
  /// - Parameters:
  ///   - data: the text of the event's `data`, such as `{"nonce":"…","ciphertext":"…"}`, in UTF-8.
  ///   - key: the key of the channel: 32 bytes.
  /// - Returns: the data that the publisher has encrypted, which is JSON as a rule.
  /// - Throws: ``ChannelDecryptionError``. After `decryptionFailed` a client asks once for a new key.
  func open(
    _ data: [UInt8], key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> [UInt8]

  /// Decodes the key of a channel, which the authorization endpoint sends as `shared_secret`.
  ///
  /// - Parameter sharedSecret: base64 with padding.
  /// - Returns: 32 bytes.
  /// - Throws: ``ChannelDecryptionError`` with the code `invalidKey`.
  func key(
    sharedSecret: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> SecretBytes
}

/// The error of an operation on an encrypted channel.
///
/// It contains no key, no ciphertext and no plaintext.
public struct ChannelDecryptionError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure; later versions can add kinds.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String

    /// Makes a code, for implementations outside this library.
    public init(_ description: String) { self.description = description }

    /// The data is not that of an encrypted event.
    public static let malformed = Code("malformed")
    /// The data is larger than the limit.
    public static let tooLarge = Code("tooLarge")
    /// The key is not the publisher's, or the data was changed.
    public static let decryptionFailed = Code("decryptionFailed")
    /// A key has not 32 bytes, or its text is not base64.
    public static let invalidKey = Code("invalidKey")
    /// The channel's name is not that of an encrypted channel.
    public static let invalidChannel = Code("invalidChannel")
    /// The library for the cipher failed.
    public static let libraryFailure = Code("libraryFailure")
  }

  /// The kind of failure.
  public let code: Code

  /// The description of what went wrong, in lower case.
  public let message: String

  /// Makes an error.
  ///
  /// - Parameter message: without a key, a ciphertext or a plaintext.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// The message.
  public var description: String { message }
}
