/// XAES-256-GCM (C2SP `XAES-256-GCM.md`): AES-256-GCM with a key derived for each nonce.
///
/// Its 24-byte nonces can be drawn at random for 2^80 messages. The first 12 bytes of a nonce
/// select a derived key, and the last 12 are GCM's nonce under it. Messages with the same first
/// half share a derived key, which ``DerivedCiphers`` caches. It is not key-committing. Only one
/// thread at a time can use it.
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
  ///   - nonce: 24 bytes that were never used before under this key.
  ///   - aad: the associated data, which the tag also authenticates; can be empty.
  ///   - tag: a buffer of 16 bytes.
  /// - Throws: `invalidArgument` for a nonce or a tag of another length.
  public func seal(
    _ message: inout MutableRawSpan, nonce: RawSpan, authenticating aad: RawSpan,
    tag: inout MutableRawSpan
  ) throws(CryptoError) {
    try unsafe message.withUnsafeMutableBytes { (message) throws(CryptoError) in
      try unsafe tag.withUnsafeMutableBytes { (tag) throws(CryptoError) in
        try unsafe nonce.withUnsafeBytes { (nonce) throws(CryptoError) in
          try unsafe aad.withUnsafeBytes { (aad) throws(CryptoError) in
            try unsafe seal(
              UnsafeRawBufferPointer(message), into: message.baseAddress, nonce: nonce,
              authenticating: aad, tag: tag)
          }
        }
      }
    }
  }

  /// Decrypts `message` in place.
  ///
  /// - Throws: `authenticationFailed` if the tag is wrong; the message is then wiped.
  ///   `invalidArgument` for a nonce or a tag of another length; the message is then unchanged.
  public func open(
    _ message: inout MutableRawSpan, nonce: RawSpan, authenticating aad: RawSpan, tag: RawSpan
  ) throws(CryptoError) {
    try unsafe message.withUnsafeMutableBytes { (message) throws(CryptoError) in
      try unsafe tag.withUnsafeBytes { (tag) throws(CryptoError) in
        try unsafe nonce.withUnsafeBytes { (nonce) throws(CryptoError) in
          try unsafe aad.withUnsafeBytes { (aad) throws(CryptoError) in
            try unsafe open(
              UnsafeRawBufferPointer(message), into: message.baseAddress, nonce: nonce,
              authenticating: aad, tag: tag)
          }
        }
      }
    }
  }

  /// Encrypts `message` in place and returns the tag; as ``seal(_:nonce:authenticating:tag:)``.
  package func seal(
    _ message: inout [UInt8], nonce: [UInt8], authenticating aad: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    var tag = [UInt8](repeating: 0, count: Self.tagByteCount)
    var messageSpan = message.mutableSpan
    var tagSpan = tag.mutableSpan
    var messageBytes = unsafe messageSpan.mutableBytes
    var tagBytes = unsafe tagSpan.mutableBytes
    try unsafe seal(
      &messageBytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: &tagBytes)
    return tag
  }

  /// Decrypts `message` in place; as ``open(_:nonce:authenticating:tag:)``.
  package func open(
    _ message: inout [UInt8], nonce: [UInt8], authenticating aad: [UInt8], tag: [UInt8]
  ) throws(CryptoError) {
    var span = message.mutableSpan
    var bytes = unsafe span.mutableBytes
    try unsafe open(
      &bytes, nonce: nonce.span.bytes, authenticating: aad.span.bytes, tag: tag.span.bytes)
  }

  /// Encrypts `plaintext` into `output`, which must have room for as many bytes, and writes the
  /// tag.
  ///
  /// The two buffers must be the same memory or must not overlap.
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
    guard isSealed else { throw .failedCall(in: "XAES-256-GCM seal") }
  }

  /// Decrypts `ciphertext` into `output`, which must have room for as many bytes.
  ///
  /// The two buffers must be the same memory or must not overlap.
  ///
  /// - Throws: `authenticationFailed` if the tag is wrong; the output is then wiped.
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
    guard isAuthentic else { throw .failedCall(.authenticationFailed, in: "XAES-256-GCM open") }
  }
}
