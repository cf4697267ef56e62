internal import COpenSSL

/// XAES-256-GCM (C2SP `XAES-256-GCM.md`): AES-256-GCM under keys derived per nonce, so that 24-byte
/// nonces may be drawn at random for 2^80 messages.
///
/// The first 12 bytes of a nonce choose a derived key, the last 12 are GCM's nonce under it.
/// Messages that share the first half share the derived key, which is kept ready: see
/// ``DerivedCiphers``. Not key-committing. Not for two threads at once.
public final class XAES256GCM {
  /// The length of a key in bytes.
  public static let keyByteCount = 32
  /// The length of a nonce in bytes.
  public static let nonceByteCount = 24
  /// The length of a tag in bytes.
  public static let tagByteCount = 16

  private let derived: DerivedCiphers

  /// Makes a cipher under `key`.
  ///
  /// - Throws: `invalidArgument` unless the key has 32 bytes.
  public init(key: borrowing SecretBytes) throws(CryptoError) {
    derived = try DerivedCiphers(key: key)
  }

  /// Encrypts `message` in place and writes the tag.
  ///
  /// - Parameters:
  ///   - nonce: 24 bytes, never used before under this key.
  ///   - aad: what the tag vouches for beside the message; may be empty.
  ///   - tag: 16 bytes of room.
  /// - Throws: `invalidArgument` for a nonce or a tag of another length.
  public func seal(
    _ message: inout MutableRawSpan, nonce: RawSpan, authenticating aad: RawSpan,
    tag: inout MutableRawSpan
  ) throws(CryptoError) {
    try unsafe message.withUnsafeMutableBytes { (message) throws(CryptoError) in
      try unsafe tag.withUnsafeMutableBytes { (tag) throws(CryptoError) in
        try unsafe nonce.withUnsafeBytes { (nonce) throws(CryptoError) in
          try unsafe aad.withUnsafeBytes { (aad) throws(CryptoError) in
            try unsafe seal(message, nonce: nonce, authenticating: aad, tag: tag)
          }
        }
      }
    }
  }

  /// Decrypts `message` in place.
  ///
  /// - Throws: `authenticationFailed` when the tag does not fit; the message is wiped then.
  ///   `invalidArgument` for a nonce or a tag of another length; the message is untouched then.
  public func open(
    _ message: inout MutableRawSpan, nonce: RawSpan, authenticating aad: RawSpan, tag: RawSpan
  ) throws(CryptoError) {
    try unsafe message.withUnsafeMutableBytes { (message) throws(CryptoError) in
      try unsafe tag.withUnsafeBytes { (tag) throws(CryptoError) in
        try unsafe nonce.withUnsafeBytes { (nonce) throws(CryptoError) in
          try unsafe aad.withUnsafeBytes { (aad) throws(CryptoError) in
            try unsafe open(message, nonce: nonce, authenticating: aad, tag: tag)
          }
        }
      }
    }
  }

  /// As ``seal(_:nonce:authenticating:tag:)-(MutableRawSpan,_,_,_)``, for pointers.
  package func seal(
    _ message: UnsafeMutableRawBufferPointer, nonce: UnsafeRawBufferPointer,
    authenticating aad: UnsafeRawBufferPointer, tag: UnsafeMutableRawBufferPointer
  ) throws(CryptoError) {
    try unsafe seal(
      UnsafeRawBufferPointer(message), into: message.baseAddress, nonce: nonce,
      authenticating: aad, tag: tag)
  }

  /// Encrypts `plaintext` into `output`, which has room for as many bytes, and writes the tag.
  ///
  /// The two are the same memory or do not overlap.
  package func seal(
    _ plaintext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?,
    nonce: UnsafeRawBufferPointer, authenticating aad: UnsafeRawBufferPointer,
    tag: UnsafeMutableRawBufferPointer
  ) throws(CryptoError) {
    guard nonce.count == Self.nonceByteCount, tag.count == Self.tagByteCount else {
      throw CryptoError(.invalidArgument, in: "XAES-256-GCM nonce or tag")
    }
    let isSealed = try unsafe derived.withMessage(for: nonce) { message in
      unsafe message.seal(
        plaintext, into: output, nonce: UnsafeRawBufferPointer(rebasing: nonce[12...]), aad: aad,
        tag: tag)
    }
    guard isSealed else { throw .refused(.libraryFailure, in: "XAES-256-GCM seal") }
  }

  /// As ``open(_:nonce:authenticating:tag:)-(MutableRawSpan,_,_,_)``, for pointers.
  package func open(
    _ message: UnsafeMutableRawBufferPointer, nonce: UnsafeRawBufferPointer,
    authenticating aad: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    try unsafe open(
      UnsafeRawBufferPointer(message), into: message.baseAddress, nonce: nonce,
      authenticating: aad, tag: tag)
  }

  /// Decrypts `ciphertext` into `output`, which has room for as many bytes.
  ///
  /// The two are the same memory or do not overlap.
  ///
  /// - Throws: `authenticationFailed` when the tag does not fit; the output is wiped then.
  ///   `invalidArgument` for a nonce or a tag of another length.
  package func open(
    _ ciphertext: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer?,
    nonce: UnsafeRawBufferPointer, authenticating aad: UnsafeRawBufferPointer,
    tag: UnsafeRawBufferPointer
  ) throws(CryptoError) {
    // A shorter tag would be easier to guess.
    guard nonce.count == Self.nonceByteCount, tag.count == Self.tagByteCount else {
      throw CryptoError(.invalidArgument, in: "XAES-256-GCM nonce or tag")
    }
    let isAuthentic = try unsafe derived.withMessage(for: nonce) { message in
      unsafe message.open(
        ciphertext, into: output, nonce: UnsafeRawBufferPointer(rebasing: nonce[12...]), aad: aad,
        tag: tag)
    }
    guard isAuthentic else { throw .refused(.authenticationFailed, in: "XAES-256-GCM open") }
  }
}
