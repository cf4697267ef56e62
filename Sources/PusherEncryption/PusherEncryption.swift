public import MessagingClient
internal import StrictJSON
public import VaultCrypto

/// Encrypts and decrypts the events of Pusher's encrypted channels, as Pusher's own libraries do.
///
/// The cipher is NaCl's secretbox: XSalsa20 and Poly1305 with a random nonce of 24 bytes. Each channel has a key of its
/// own, which a publisher derives from a master key, and a client gets from the authorization endpoint.
///
/// The text of an event's `data` is `{"nonce":"…","ciphertext":"…"}` with standard base64. The ciphertext begins with
/// the tag of 16 bytes.
///
/// The cipher binds a message neither to its channel's name beyond the key, nor to its event's name, nor to its place:
/// a server can repeat, leave out or rename events. It can see channels, names, times and sizes.
///
/// https://pusher.com/docs/channels/using_channels/encrypted-channels/
public struct PusherEncryption: ChannelDecryption {
  /// The length of a master key and of a channel's key in bytes.
  public static let keyByteCount = 32
  /// The longest text of an event's `data` in bytes, of which the ciphertext is a part: 1 MiB.
  public static let maximumDataByteCount = 1 << 20
  /// The longest plaintext in bytes, whose text is not longer than ``maximumDataByteCount``.
  public static let maximumPlaintextByteCount = 786_000

  private let random: RandomSource

  /// Makes an encryption with nonces of the kernel's generator.
  public init() { self.init(random: .system) }

  /// Makes an encryption that draws its nonces from a source of the caller's, for tests.
  package init(random: RandomSource) { self.random = random }

  /// Encrypts the data of an event.
  ///
  /// - Parameters:
  ///   - plaintext: any bytes, JSON as a rule; at most ``maximumPlaintextByteCount``.
  ///   - key: the key of the channel: 32 bytes.
  /// - Returns: the text of the event's `data` in UTF-8.
  /// - Throws: `tooLarge`, `invalidKey`, `libraryFailure`.
  public func seal(
    _ plaintext: [UInt8], key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> [UInt8] {
    guard plaintext.count <= Self.maximumPlaintextByteCount else {
      throw .tooLarge("plaintext", plaintext.count, limit: Self.maximumPlaintextByteCount)
    }
    let nonce = random.bytes(count: Secretbox.nonceByteCount)
    let ciphertext = try Secretbox.seal(plaintext, nonce: nonce, key: key)
    var text = Array(#"{"nonce":""#.utf8)
    text += Base64.text(nonce)
    text += #"","ciphertext":""#.utf8
    text += Base64.text(ciphertext)
    text += #""}"#.utf8
    return text
  }

  /// Decrypts the data of an event.
  ///
  /// - Parameters:
  ///   - data: the text of the event's `data` in UTF-8: a JSON object with the members `nonce` and `ciphertext`, whose
  ///     order does not matter. Other members are ignored.
  ///   - key: the key of the channel: 32 bytes.
  /// - Returns: the plaintext, which the caller wipes if it is secret.
  /// - Throws: `tooLarge`, `malformed`, `invalidKey`, `decryptionFailed`, `libraryFailure`.
  public func open(
    _ data: [UInt8], key: borrowing SecretBytes
  ) throws(ChannelDecryptionError) -> [UInt8] {
    guard data.count <= Self.maximumDataByteCount else {
      throw .tooLarge("data", data.count, limit: Self.maximumDataByteCount)
    }
    let nonce = try Self.member("nonce", of: data)
    guard nonce.count == Secretbox.nonceByteCount else {
      throw .malformed("its nonce has not \(Secretbox.nonceByteCount) bytes")
    }
    let ciphertext = try Self.member("ciphertext", of: data)
    guard ciphertext.count >= Secretbox.tagByteCount else {
      throw .malformed("its ciphertext has less than \(Secretbox.tagByteCount) bytes")
    }
    return try Secretbox.open(ciphertext, nonce: nonce, key: key)
  }

  /// How deep members that are ignored can be nested.
  private static let maximumDepth = 8

  /// The bytes of a member, whose value is a string of base64.
  private static func member(
    _ name: String, of data: [UInt8]
  ) throws(ChannelDecryptionError) -> [UInt8] {
    let range: Range<Int>?
    do throws(JSONFault) {
      range = try JSONText.member(name, in: data, maximumDepth: maximumDepth)
    } catch {
      throw .malformed("it \(error)")
    }
    guard let range, data[range].first == UInt8(ascii: "\""),
      let text = JSONText.decode(data[range])
    else { throw .malformed("it is no object with a text '\(name)'") }
    guard let bytes = Base64.bytes(text) else {
      throw .malformed("its \(name) is not base64 with padding")
    }
    return bytes
  }
}

extension ChannelDecryptionError {
  static func malformed(_ fault: String) -> ChannelDecryptionError {
    ChannelDecryptionError(.malformed, "the data is not that of an encrypted event: \(fault)")
  }

  static func tooLarge(_ what: String, _ byteCount: Int, limit: Int) -> ChannelDecryptionError {
    ChannelDecryptionError(
      .tooLarge, "the \(what) of the event has \(byteCount) bytes, the limit is \(limit)")
  }

  static func keyLength(_ byteCount: Int) -> ChannelDecryptionError {
    ChannelDecryptionError(
      .invalidKey, "a key has \(PusherEncryption.keyByteCount) bytes, not \(byteCount)")
  }

  static var library: ChannelDecryptionError {
    ChannelDecryptionError(.libraryFailure, "libsodium or OpenSSL failed")
  }
}
