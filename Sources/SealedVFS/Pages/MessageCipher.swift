internal import VaultCrypto

/// The authenticated cipher of pages, journal headers and temporary blocks: XAES-256-GCM.
///
/// The nonce and the tag of a message lie together, at a place that the caller chooses. Another
/// cipher is a type like `XAES256GCM` that this type chooses, for another version of the format.
/// Only one thread at a time can use it.
struct MessageCipher {
  static let keyByteCount = 32
  static let nonceByteCount = 24
  static let tagByteCount = 16
  /// The room for a nonce and the tag after it.
  static let sealingByteCount = nonceByteCount + tagByteCount

  private let cipher: XAES256GCM

  init(key: borrowing SecretBytes) throws(CryptoError) {
    cipher = try XAES256GCM(key: key)
  }

  /// Encrypts a message into `target`, which can be the same memory.
  ///
  /// - Parameter sealing: gets the nonce and the tag.
  /// - Throws: `libraryFailure`.
  func seal(
    _ message: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer,
    sealing: UnsafeMutableRawPointer, authenticating data: UnsafeRawBufferPointer,
    nonces: inout NonceSequence
  ) throws(CryptoError) {
    unsafe nonces.writeNext(to: sealing)
    let nonce = unsafe UnsafeRawBufferPointer(start: sealing, count: Self.nonceByteCount)
    let tag = unsafe UnsafeMutableRawBufferPointer(
      start: sealing + Self.nonceByteCount, count: Self.tagByteCount)
    try unsafe cipher.seal(message, into: target, nonce: nonce, authenticating: data, tag: tag)
  }

  /// Decrypts a message into `target`, which can be the same memory.
  ///
  /// - Returns: false if the message does not authenticate; `target` is then wiped.
  /// - Throws: `libraryFailure`, which says nothing about the message.
  func open(
    _ message: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer,
    sealing: UnsafeRawPointer, authenticating data: UnsafeRawBufferPointer
  ) throws(CryptoError) -> Bool {
    let nonce = unsafe UnsafeRawBufferPointer(start: sealing, count: Self.nonceByteCount)
    let tag = unsafe UnsafeRawBufferPointer(
      start: sealing + Self.nonceByteCount, count: Self.tagByteCount)
    do throws(CryptoError) {
      try unsafe cipher.open(message, into: target, nonce: nonce, authenticating: data, tag: tag)
      return true
    } catch  where error.code == .authenticationFailed {
      return false
    }
  }
}
