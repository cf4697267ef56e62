internal import COpenSSL

/// SHA-256 (FIPS 180-4), for public or secret bytes.
@safe public struct SHA256: ~Copyable {
  /// The length of a digest in bytes.
  public static let byteCount = 32

  private let context: OpaquePointer

  /// Starts a digest.
  public init() throws(CryptoError) {
    guard let context = unsafe EVP_MD_CTX_new() else {
      throw .failedCall(in: "SHA-256")
    }
    guard unsafe EVP_DigestInit_ex2(context, Digest.sha256.pointer, nil) == 1 else {
      unsafe EVP_MD_CTX_free(context)
      throw .failedCall(in: "SHA-256")
    }
    unsafe self.context = context
  }

  /// Adds bytes.
  public mutating func update(_ bytes: RawSpan) throws(CryptoError) {
    let status = unsafe bytes.withUnsafeBytes {
      unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count)
    }
    guard status == 1 else { throw .failedCall(in: "SHA-256") }
  }

  /// The digest of all bytes added: 32 bytes.
  public consuming func finalize() throws(CryptoError) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Self.byteCount)
    guard unsafe EVP_DigestFinal_ex(context, &digest, nil) == 1 else {
      throw .failedCall(in: "SHA-256")
    }
    return digest
  }

  /// The digest of one sequence: 32 bytes.
  public static func digest(_ bytes: RawSpan) throws(CryptoError) -> [UInt8] {
    var hash = try SHA256()
    try hash.update(bytes)
    return try hash.finalize()
  }

  /// The digest of a secret, which is a secret too: 32 bytes.
  package static func digest(of secret: borrowing SecretBytes) throws(CryptoError) -> SecretBytes {
    try unsafe SecretBytes(byteCount: byteCount) { (digest) throws(CryptoError) in
      let status = unsafe secret.withUnsafeBytes { secret in
        unsafe EVP_Digest(
          secret.baseAddress, secret.count, digest.octets, nil, Digest.sha256.pointer, nil)
      }
      guard status == 1 else { throw .failedCall(in: "SHA-256") }
    }
  }

  deinit {
    unsafe EVP_MD_CTX_free(context)
  }
}

/// A hash function, fetched from OpenSSL once and kept for the life of the process.
@safe struct Digest: @unchecked Sendable {
  // Sendable: an EVP_MD is immutable after the fetch.
  let pointer: OpaquePointer
  let byteCount: Int

  /// OpenSSL's name of the function, which lives as long.
  var name: UnsafePointer<CChar> { unsafe EVP_MD_get0_name(pointer) }

  static let sha256 = Digest("SHA2-256")
  static let sha512 = Digest("SHA2-512")

  private init(_ name: String) {
    guard let pointer = unsafe EVP_MD_fetch(nil, name, nil) else {
      preconditionFailure("OpenSSL's providers lack \(name)")
    }
    unsafe self.pointer = pointer
    byteCount = unsafe Int(EVP_MD_get_size(pointer))
  }
}

extension [UInt8] {
  /// Two lowercase digits for each byte.
  package var hexadecimal: String {
    let digits = Array<UInt8>("0123456789abcdef".utf8)
    return String(
      decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
  }
}
