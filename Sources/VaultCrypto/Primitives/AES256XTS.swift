internal import COpenSSL

/// AES-256-XTS (IEEE 1619, SP 800-38E) for data units of one block: a keyed permutation of 16
/// bytes, selected by a tweak.
///
/// It encrypts without authentication. For one block XTS equals XEX, two calls of the block cipher.
/// OpenSSL's own XTS mode takes four times as long to begin a data unit. Only one thread at a time
/// can use it.
public final class AES256XTS {
  /// The length of a key in bytes: two AES-256 keys, data key and tweak key.
  public static let keyByteCount = 64
  /// The length of a data unit in bytes.
  public static let unitByteCount = 16

  private let encryption: CipherContext
  private let decryption: CipherContext
  private let tweakEncryption: CipherContext

  /// Prepares both directions.
  ///
  /// - Throws: `invalidArgument` unless the key has 64 bytes and two different halves; the standard
  ///   forbids equal halves.
  public init(key: borrowing SecretBytes) throws(CryptoError) {
    let half = Self.keyByteCount / 2
    guard key.byteCount == Self.keyByteCount else {
      throw CryptoError(.invalidArgument, in: "AES-256-XTS key")
    }
    let dataKey = key.copy(0..<half)
    let tweakKey = key.copy(half..<2 * half)
    guard !SecretBytes.isEqual(dataKey, tweakKey) else {
      throw CryptoError(.invalidArgument, in: "AES-256-XTS key")
    }
    encryption = try .keyed(.aes256ECB, isEncrypting: true, key: dataKey)
    decryption = try .keyed(.aes256ECB, isEncrypting: false, key: dataKey)
    tweakEncryption = try .keyed(.aes256ECB, isEncrypting: true, key: tweakKey)
    unsafe EVP_CIPHER_CTX_set_padding(decryption.pointer, 0)  // or it would keep a block back
  }

  /// Encrypts one data unit of 16 bytes in place; `tweak` is its number.
  package func encrypt(
    _ unit: UnsafeMutableRawPointer, tweak: UInt64
  ) throws(CryptoError) {
    try unsafe transform(unit, tweak: tweak, encryption)
  }

  /// Decrypts one data unit of 16 bytes in place; arguments and errors are those of
  /// ``encrypt(_:tweak:)``.
  package func decrypt(
    _ unit: UnsafeMutableRawPointer, tweak: UInt64
  ) throws(CryptoError) {
    try unsafe transform(unit, tweak: tweak, decryption)
  }

  private func transform(
    _ unit: UnsafeMutableRawPointer, tweak: UInt64, _ context: borrowing CipherContext
  ) throws(CryptoError) {
    var mask = (tweak.littleEndian, 0 as UInt64)
    let unit = unsafe UnsafeMutableRawBufferPointer(start: unit, count: Self.unitByteCount)
    let isDone = unsafe withUnsafeMutableBytes(of: &mask) { mask in
      guard unsafe tweakEncryption.encipher(mask) else { return false }
      unsafe Self.combine(unit, mask)
      guard unsafe context.encipher(unit) else { return false }
      unsafe Self.combine(unit, mask)
      return true
    }
    guard isDone else { throw .failedCall(in: "AES-256-XTS") }
  }

  private static func combine(
    _ unit: UnsafeMutableRawBufferPointer, _ mask: UnsafeMutableRawBufferPointer
  ) {
    for offset in [0, 8] {
      unsafe unit.storeBytes(
        of: unit.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
          ^ mask.loadUnaligned(fromByteOffset: offset, as: UInt64.self),
        toByteOffset: offset, as: UInt64.self)
    }
  }
}
