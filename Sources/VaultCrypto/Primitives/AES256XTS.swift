internal import COpenSSL

/// AES-256-XTS (IEEE 1619, SP 800-38E): a keyed permutation of a data unit, chosen by a tweak.
///
/// It hides; it does not authenticate. Not for two threads at once.
public final class AES256XTS {
  /// Two AES-256 keys: 64 bytes.
  public static let keyByteCount = 64

  private let encryption: CipherContext
  private let decryption: CipherContext

  /// Makes both directions ready.
  ///
  /// - Throws: `invalidArgument` unless the key has 64 bytes; `libraryFailure` when its halves are
  ///   equal, which the standard forbids.
  public init(key: borrowing SecretBytes) throws(CryptoError) {
    encryption = try CipherContext.keyed(.aes256XTS, isEncrypting: true, key: key)
    decryption = try CipherContext.keyed(.aes256XTS, isEncrypting: false, key: key)
  }

  /// Encrypts one data unit in place; `tweak` is its number, little endian.
  ///
  /// - Throws: `invalidArgument` for fewer than 16 bytes.
  package func encrypt(
    _ unit: UnsafeMutableRawBufferPointer, tweak: UInt64
  ) throws(CryptoError) {
    try unsafe transform(unit, tweak: (tweak.littleEndian, 0), encryption, isEncrypting: 1)
  }

  /// Decrypts one data unit in place; arguments and errors as ``encrypt(_:tweak:)``.
  package func decrypt(
    _ unit: UnsafeMutableRawBufferPointer, tweak: UInt64
  ) throws(CryptoError) {
    try unsafe transform(unit, tweak: (tweak.littleEndian, 0), decryption, isEncrypting: 0)
  }

  private func transform(
    _ unit: UnsafeMutableRawBufferPointer, tweak: (UInt64, UInt64),
    _ context: borrowing CipherContext, isEncrypting: Int32
  ) throws(CryptoError) {
    guard unit.count >= 16, let length = Int32(exactly: unit.count) else {
      throw CryptoError(.invalidArgument, in: "AES-256-XTS data unit")
    }
    var tweak = tweak
    var count: Int32 = 0
    let bytes = unsafe unit.baseAddress?.assumingMemoryBound(to: UInt8.self)
    let isDone = unsafe withUnsafeBytes(of: &tweak) { tweak in
      unsafe EVP_CipherInit_ex2(
        context.pointer, nil, nil, tweak.baseAddress?.assumingMemoryBound(to: UInt8.self),
        isEncrypting, nil) == 1
        && EVP_CipherUpdate(context.pointer, bytes, &count, bytes, length) == 1
    }
    guard isDone, Int(count) == unit.count else {
      throw .refused(.libraryFailure, in: "AES-256-XTS")
    }
  }
}
