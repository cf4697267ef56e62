internal import Synchronization
internal import VaultCrypto

/// PubNub's forms: AES-256-CBC with PKCS #7 padding, not authenticated.
///
/// See `docs/reference/encrypted-message-format.md`, "PubNub's forms".
final class CBCCryptor: Cryptor {
  private static let staticIV = Array("0123456789012345".utf8)

  let form: MessageCipher.Form
  let family: MessageCipher.SealedMessage.Family
  let keyID: [UInt8]? = nil

  private let cipher: Mutex<AES256CBC>
  private let random: RandomSource
  /// The bytes before the IV: a header, or none.
  private let header: [UInt8]
  /// Whether a message contains its IV.
  private let hasOwnIV: Bool

  /// - Parameter form: one of PubNub's.
  init(
    _ form: MessageCipher.Form, cipherKey: borrowing SecretBytes, random: RandomSource
  ) throws(CryptoError) {
    self.form = form
    self.random = random
    let digest = try SHA256.digest(of: cipherKey)
    hasOwnIV = form != .legacyStaticIV
    if form == .aesCBC {
      family = .aesCBC
      header = MessageCipher.Header.bytes(
        MessageCipher.Header.aesCBC, dataByteCount: AES256CBC.ivByteCount)
      cipher = Mutex(try AES256CBC(key: digest))
    } else {
      family = .legacy
      header = []
      cipher = Mutex(try AES256CBC(key: Self.legacyKey(digest)))
    }
  }

  func seal(_ plaintext: [UInt8], _ binding: MessageCipher.Binding) throws(CryptoError) -> [UInt8] {
    let iv = hasOwnIV ? random.bytes(count: AES256CBC.ivByteCount) : Self.staticIV
    var message = plaintext + BlockPadding.bytes(for: plaintext.count)
    try cipher.withLock { (cipher) throws(CryptoError) in try cipher.encrypt(&message, iv: iv) }
    return header + (hasOwnIV ? iv : []) + message
  }

  func open(
    _ message: MessageCipher.SealedMessage, _ binding: MessageCipher.Binding
  ) throws(CryptoError) -> [UInt8] {
    let ivEnd = header.count + (hasOwnIV ? AES256CBC.ivByteCount : 0)
    guard message.bytes.starts(with: header), message.bytes.count > ivEnd else {
      throw CryptoError(.invalidArgument, in: "AES-256-CBC message")
    }
    let iv = hasOwnIV ? Array(message.bytes[header.count..<ivEnd]) : Self.staticIV
    var plaintext = Array(message.bytes[ivEnd...])
    try cipher.withLock { (cipher) throws(CryptoError) in try cipher.decrypt(&plaintext, iv: iv) }
    guard let paddingByteCount = BlockPadding.byteCount(endOf: plaintext) else {
      wipe(&plaintext)
      throw CryptoError(.authenticationFailed, in: "AES-256-CBC message")
    }
    plaintext.removeLast(paddingByteCount)
    return plaintext
  }

  /// The first 16 bytes of a digest as 32 lower-case hexadecimal digits.
  private static func legacyKey(_ digest: borrowing SecretBytes) -> SecretBytes {
    unsafe SecretBytes(byteCount: AES256CBC.keyByteCount) { key in
      unsafe digest.withUnsafeBytes { digest in
        for index in 0..<AES256CBC.keyByteCount / 2 {
          let byte = unsafe digest[index]
          unsafe key[2 * index] = digit(byte >> 4)
          unsafe key[2 * index + 1] = digit(byte & 0xF)
        }
      }
    }
  }

  /// The digit for 4 bits, without a table or a branch, because a key passes through it.
  private static func digit(_ bits: UInt8) -> UInt8 {
    let value = Int16(bits)
    return UInt8(truncatingIfNeeded: value + 48 + (((9 - value) >> 8) & 39))
  }
}

/// The padding of PKCS #7 (RFC 5652, section 6.3) for blocks of 16 bytes.
enum BlockPadding {
  private static let blockByteCount = 16

  /// The padding for a plaintext: 1 to 16 bytes.
  static func bytes(for plaintextByteCount: Int) -> [UInt8] {
    let count = blockByteCount - plaintextByteCount % blockByteCount
    return [UInt8](repeating: UInt8(count), count: count)
  }

  /// The length of the padding at the end of whole blocks; nil if it is wrong.
  ///
  /// The time depends neither on the padding nor on where it is wrong.
  static func byteCount(endOf blocks: [UInt8]) -> Int? {
    guard blocks.count >= blockByteCount, let last = blocks.last else { return nil }
    let count = Int32(last)
    var fault = ((count - 1) | (Int32(blockByteCount) - count)) >> 8
    for distance in 0..<blockByteCount {
      let isPadding = (Int32(distance) - count) >> 8
      fault |= isPadding & Int32(blocks[blocks.count - 1 - distance] ^ last)
    }
    return fault == 0 ? Int(count) : nil
  }
}
