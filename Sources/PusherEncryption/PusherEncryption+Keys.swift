public import MessagingClient
public import VaultCrypto

// Keys, and their texts: base64 with padding, which is coded without a branch or an address that depends on the key.
extension PusherEncryption {
  /// What the names of encrypted channels begin with.
  public static let channelPrefix = "private-encrypted-"
  /// The longest name of a channel in bytes.
  public static let maximumChannelByteCount = 164

  /// Derives the key of a channel: SHA-256 of the channel's name and the 32 bytes of the master key.
  ///
  /// - Parameters:
  ///   - channel: a name that begins with ``channelPrefix``, at most ``maximumChannelByteCount`` bytes of UTF-8.
  ///   - masterKey: 32 random bytes, not their base64.
  /// - Returns: 32 bytes.
  /// - Throws: `invalidChannel`, `invalidKey`, `libraryFailure`.
  public static func key(
    of channel: String, masterKey: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> SecretBytes {
    let name = Array(channel.utf8)
    guard name.starts(with: channelPrefix.utf8), name.count <= maximumChannelByteCount else {
      throw ChannelDecryptionError(
        .invalidChannel,
        "the name of an encrypted channel begins with \(channelPrefix) and has at most \(maximumChannelByteCount) bytes"
      )
    }
    guard masterKey.byteCount == keyByteCount else { throw .keyLength(masterKey.byteCount) }
    let input = unsafe SecretBytes(byteCount: name.count + keyByteCount) { target in
      unsafe target.copyBytes(from: name)
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[name.count...])
      unsafe masterKey.withUnsafeBytes { unsafe rest.copyMemory(from: $0) }
    }
    do throws(CryptoError) {
      return try SHA256.digest(of: input)
    } catch {
      throw .library
    }
  }

  /// Decodes a master key from its base64, as the configurations of Pusher's server libraries have it.
  ///
  /// - Returns: 32 bytes.
  /// - Throws: `invalidKey`.
  public static func masterKey(
    base64 text: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> SecretBytes {
    guard let key = Base64.secret(text, byteCount: keyByteCount) else {
      throw ChannelDecryptionError(
        .invalidKey, "the text of a key is base64 with padding of \(keyByteCount) bytes")
    }
    return key
  }

  /// Decodes the key of a channel, which the authorization endpoint sends as `shared_secret`.
  ///
  /// - Returns: 32 bytes.
  /// - Throws: `invalidKey`.
  public func key(
    sharedSecret: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> SecretBytes {
    try Self.masterKey(base64: sharedSecret)
  }

  /// The `shared_secret` of a channel, for an authorization endpoint: the base64 of its key.
  ///
  /// - Throws: `invalidKey` for a key that has not 32 bytes.
  public static func sharedSecret(
    of key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> SecretBytes {
    guard key.byteCount == keyByteCount else { throw .keyLength(key.byteCount) }
    return Base64.text(of: key)
  }
}
