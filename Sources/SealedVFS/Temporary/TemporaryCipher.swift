internal import VaultCrypto

/// Seals and opens the blocks of one temporary file under a random key of its own.
///
/// The key is drawn here, passed to the cipher and wiped. The cipher is released with the file.
final class TemporaryCipher {
  private let cipher: MessageCipher
  private var nonces = NonceSequence()
  private let additionalData = Scratch(byteCount: TemporaryLayout.additionalDataByteCount)

  init() throws(CryptoError) {
    let key = SecretBytes.random(byteCount: MessageCipher.keyByteCount)
    cipher = try MessageCipher(key: key)
    unsafe additionalData.pointer.storeBytes(of: Role.temporary.rawValue, as: UInt8.self)
  }

  /// Seals 4096 bytes into a block of 4136.
  func seal(
    _ content: UnsafeRawPointer, block: Int64, into target: UnsafeMutableRawPointer
  ) throws(CryptoError) {
    try unsafe cipher.seal(
      UnsafeRawBufferPointer(start: content, count: TemporaryLayout.contentByteCount),
      into: target, sealing: target + TemporaryLayout.contentByteCount,
      authenticating: additionalData(of: block), nonces: &nonces)
  }

  /// Opens a block of 4136 bytes into 4096, which are wiped if it returns false.
  func open(
    _ sealed: UnsafeRawPointer, block: Int64, into target: UnsafeMutableRawPointer
  ) throws(CryptoError) -> Bool {
    try unsafe cipher.open(
      UnsafeRawBufferPointer(start: sealed, count: TemporaryLayout.contentByteCount),
      into: target, sealing: sealed + TemporaryLayout.contentByteCount,
      authenticating: additionalData(of: block))
  }

  private func additionalData(of block: Int64) -> UnsafeRawBufferPointer {
    unsafe additionalData.pointer.storeBytes(of: block.bigEndian, toByteOffset: 1, as: Int64.self)
    return unsafe additionalData.bytes(0..<TemporaryLayout.additionalDataByteCount)
  }
}

/// The offsets in a sealed temporary file: `docs/reference/sealed-database-format.md`, "Temporary files".
///
/// SQLite's temporary files have no pages: a sorter, a statement journal and a transient table read
/// and write any number of bytes at any offset. They are therefore sealed in blocks, each followed
/// by its nonce and tag. A page of 4096 bytes is exactly one block.
enum TemporaryLayout {
  static let contentByteCount = 4096
  static let blockByteCount = contentByteCount + MessageCipher.sealingByteCount

  /// One byte for the role, and eight for the block's number.
  static let additionalDataByteCount = 9

  /// The offset of a block on disk; blocks count from 0.
  static func offset(ofBlock number: Int64) -> Int64 { number * Int64(blockByteCount) }

  /// The block that holds a byte, and the byte's offset in it.
  static func place(at offset: Int64) -> (block: Int64, within: Int) {
    let (block, within) = offset.quotientAndRemainder(dividingBy: Int64(contentByteCount))
    return (block, Int(within))
  }
}
