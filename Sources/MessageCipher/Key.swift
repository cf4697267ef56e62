public import VaultCrypto

extension MessageCipher {
  /// A key, and the form of the messages under it.
  public struct Key: Sendable {
    /// The maximum size of PubNub's cipher keys in bytes: 64 KiB.
    public static let maximumCipherKeyByteCount = 65536

    let cryptor: any Cryptor

    /// The form of the messages under this key.
    public var form: Form { cryptor.form }

    /// The key id that each message of the form ``Form/xaes256GCM`` names: 16 hexadecimal digits.
    ///
    /// It is not secret. It is nil for PubNub's forms, whose messages do not name their key.
    public var id: String? { cryptor.keyID?.hexadecimal }

    /// Makes a key for one form.
    ///
    /// - Parameters:
    ///   - form: what the key is for.
    ///   - secret: 32 random bytes for ``Form/xaes256GCM``. For the forms of PubNub, the text of the
    ///     cipher key as all clients have it, in UTF-8. The caller keeps it.
    /// - Throws: `invalidArgument` for a secret of another length; `libraryFailure`.
    public init(_ form: Form, _ secret: borrowing SecretBytes) throws(MessageCipherError) {
      try self.init(form, secret, random: .system)
    }

    /// Makes a key that draws its nonces and initialization vectors from a source of the caller's,
    /// for tests.
    package init(
      _ form: Form, _ secret: borrowing SecretBytes, random: RandomSource
    ) throws(MessageCipherError) {
      let lengths =
        form == .xaes256GCM
        ? XAESCryptor.keyByteCount...XAESCryptor.keyByteCount
        : 1...Self.maximumCipherKeyByteCount
      guard lengths.contains(secret.byteCount) else {
        throw .keyLength(secret.byteCount, form, lengths)
      }
      do throws(CryptoError) {
        cryptor =
          form == .xaes256GCM
          ? try XAESCryptor(key: secret, random: random)
          : try CBCCryptor(form, cipherKey: secret, random: random)
      } catch {
        throw .library(error)
      }
    }
  }
}
