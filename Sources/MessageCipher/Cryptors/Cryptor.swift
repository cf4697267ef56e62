internal import VaultCrypto

/// One form of messages under one key.
protocol Cryptor: Sendable {
  var form: MessageCipher.Form { get }
  /// Which messages are for it.
  var family: MessageCipher.SealedMessage.Family { get }
  /// The id of its key that messages name; nil if they name none.
  var keyID: [UInt8]? { get }

  /// Encrypts a plaintext.
  func seal(_ plaintext: [UInt8], _ binding: MessageCipher.Binding) throws(CryptoError) -> [UInt8]

  /// Decrypts a message of its family, and of its key if the message names one.
  ///
  /// - Throws: `libraryFailure`, and any other code if the message does not open.
  func open(
    _ message: MessageCipher.SealedMessage, _ binding: MessageCipher.Binding
  ) throws(CryptoError) -> [UInt8]
}
