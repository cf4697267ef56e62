internal import COpenSSL

/// HMAC (RFC 2104): an authentication code over a message.
///
/// Compare codes only with ``isEqualInConstantTime(_:_:)``.
public enum HMAC {
  /// The code under SHA-256: 32 bytes.
  public static func sha256(
    key: borrowing SecretBytes, message: RawSpan
  ) throws(CryptoError) -> [UInt8] {
    try code(.sha256, key: key, message: message)
  }

  /// The code under SHA-512: 64 bytes.
  public static func sha512(
    key: borrowing SecretBytes, message: RawSpan
  ) throws(CryptoError) -> [UInt8] {
    try code(.sha512, key: key, message: message)
  }

  private static func code(
    _ digest: Digest, key: borrowing SecretBytes, message: RawSpan
  ) throws(CryptoError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: digest.byteCount)
    let written = unsafe key.withUnsafeBytes { key in
      unsafe message.withUnsafeBytes { message in
        unsafe EVP_Q_mac(
          nil, "HMAC", nil, digest.name, nil, key.baseAddress, key.count,
          message.octets, message.count, &code, digest.byteCount, nil)
      }
    }
    guard unsafe written != nil else { throw .failedCall(in: "HMAC") }
    return code
  }
}

/// HMAC-SHA-512 (RFC 2104) for many messages under one key, whose two hashed blocks are computed
/// once.
///
/// Compare codes only with ``isEqualInConstantTime(_:_:)``. Only one thread at a time can use it.
@safe public final class KeyedHMACSHA512 {
  /// The length of a code in bytes.
  public static let byteCount = 64

  /// The keyed context without a message; each message uses a copy.
  ///
  /// Restarting a context with the same key does not work in every OpenSSL 3.0.
  private let keyed: OpaquePointer

  /// OpenSSL's HMAC, fetched once and kept for the life of the process.
  @safe private struct Function: @unchecked Sendable {
    // Sendable: an EVP_MAC is immutable after the fetch.
    let pointer: OpaquePointer?
    static let fetched = unsafe Function(pointer: EVP_MAC_fetch(nil, "HMAC", nil))
  }

  /// Makes a MAC with a key of any length.
  public init(key: borrowing SecretBytes) throws(CryptoError) {
    guard let function = unsafe Function.fetched.pointer,
      let context = unsafe EVP_MAC_CTX_new(function)
    else { throw .failedCall(in: "HMAC") }
    let parameters = unsafe [OSSL_PARAM(Digest.sha512), OSSL_PARAM_construct_end()]
    let status = unsafe key.withUnsafeBytes { key in
      unsafe EVP_MAC_init(context, key.octets, key.count, parameters)
    }
    guard status == 1 else {
      unsafe EVP_MAC_CTX_free(context)
      throw .failedCall(in: "HMAC")
    }
    unsafe keyed = context
  }

  deinit {
    unsafe EVP_MAC_CTX_free(keyed)
  }

  /// Writes the code of a message in two parts: 64 bytes.
  package func writeCode(
    of first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer,
    to target: UnsafeMutableRawPointer
  ) throws(CryptoError) {
    guard let context = unsafe EVP_MAC_CTX_dup(keyed) else {
      throw .failedCall(in: "HMAC")
    }
    defer { unsafe EVP_MAC_CTX_free(context) }
    var count = 0
    let isDone =
      unsafe EVP_MAC_update(context, first.octets, first.count) == 1
      && EVP_MAC_update(context, second.octets, second.count) == 1
      && EVP_MAC_final(
        context, target.assumingMemoryBound(to: UInt8.self), &count, Self.byteCount) == 1
    guard isDone, count == Self.byteCount else { throw .failedCall(in: "HMAC") }
  }
}
