internal import COpenSSL

/// A cache of XAES's derived keys, scheduled and ready, by the first half of the nonce.
///
/// A writer keeps one first half throughout a transaction, so a database has runs of pages with the
/// same derived key. A few slots, replaced in turn, avoid most derivations of a scan.
final class DerivedCiphers {
  /// A GCM context, keyed for `prefix` if `isKeyed` is true.
  private struct Slot: ~Copyable {
    var prefix: (UInt64, UInt32) = (0, 0)
    var isKeyed = false
    let message: GCMMessage

    init() throws(CryptoError) {
      message = GCMMessage(context: try .awaitingKeys(of: .aes256GCM))
    }
  }

  private var slots: InlineArray<8, Slot>
  private var nextVictim = 0
  private let blockCipher: CipherContext
  private let subkey: SecretBytes
  private var scratch = SecretBytes(zeroCount: 32)

  init(key: borrowing SecretBytes) throws(CryptoError) {
    guard key.byteCount == XAES256GCM.keyByteCount else {
      throw CryptoError(.invalidArgument, in: "XAES-256-GCM key")
    }
    blockCipher = try .keyed(.aes256ECB, isEncrypting: true, key: key)
    subkey = try Self.subkey(under: blockCipher)
    slots = try InlineArray { (_) throws(CryptoError) in try Slot() }
  }

  /// Lends the context for this nonce of 24 bytes.
  @inline(__always)
  func withMessage(
    for nonce: UnsafeRawBufferPointer, _ body: (borrowing GCMMessage) -> Bool
  ) throws(CryptoError) -> Bool {
    body(slots[try unsafe prepare(nonce)].message)
  }

  /// The index of the slot for this nonce, keyed if necessary.
  private func prepare(_ nonce: UnsafeRawBufferPointer) throws(CryptoError) -> Int {
    let prefix = unsafe (
      nonce.loadUnaligned(as: UInt64.self),
      nonce.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
    )
    for index in slots.indices where slots[index].isKeyed && slots[index].prefix == prefix {
      return index
    }
    let index = nextVictim
    nextVictim = (nextVictim + 1) % slots.count
    slots[index].isKeyed = false
    try unsafe key(slots[index].message, for: nonce)
    slots[index].prefix = prefix
    slots[index].isKeyed = true
    return index
  }

  /// Derives the key of `nonce`'s first half and schedules it.
  private func key(
    _ message: borrowing GCMMessage, for nonce: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    try unsafe scratch.withUnsafeMutableBytes { (key) throws(CryptoError) in
      defer { unsafe OPENSSL_cleanse(key.baseAddress, key.count) }
      // The scratch space holds zeros here and after the defer.
      // Two blocks: 00 01 58 00 || N[0..<12] and 00 02 58 00 || N[0..<12], each XOR K1.
      unsafe subkey.withUnsafeBytes { subkey in
        for block in 0..<2 {
          let offset = 16 * block
          unsafe key[offset + 1] = UInt8(block + 1)
          unsafe key[offset + 2] = 0x58
          for index in 0..<12 { unsafe key[offset + 4 + index] = nonce[index] }
          for index in 0..<16 { unsafe key[offset + index] ^= subkey[index] }
        }
      }
      guard unsafe blockCipher.encipher(key),
        unsafe EVP_CipherInit_ex2(message.context.pointer, nil, key.octets, nil, -1, nil) == 1
      else { throw .failedCall(in: "XAES-256-GCM key") }
    }
  }

  /// K1 of the specification: the cipher of the zero block, doubled as in CMAC (SP 800-38B, 6.1).
  private static func subkey(
    under cipher: borrowing CipherContext
  ) throws(CryptoError) -> SecretBytes {
    var block = SecretBytes(zeroCount: 16)
    try unsafe block.withUnsafeMutableBytes { (block) throws(CryptoError) in
      guard unsafe cipher.encipher(block) else {
        throw .failedCall(in: "XAES-256-GCM key")
      }
      let topBit = unsafe block[0] >> 7
      for index in 0..<15 { unsafe block[index] = block[index] << 1 | block[index + 1] >> 7 }
      unsafe block[15] = block[15] << 1 ^ (topBit * 0x87)
    }
    return block
  }
}
