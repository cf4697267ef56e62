internal import COpenSSL

/// A hash function, fetched from OpenSSL once for the life of the process.
@safe struct Digest: @unchecked Sendable {
  // Sendable: an EVP_MD is immutable after the fetch.
  let pointer: OpaquePointer
  let name: String
  let byteCount: Int

  static let sha256 = Digest("SHA2-256")
  static let sha512 = Digest("SHA2-512")

  private init(_ name: String) {
    guard let pointer = unsafe EVP_MD_fetch(nil, name, nil) else {
      preconditionFailure("OpenSSL's providers lack \(name)")
    }
    unsafe self.pointer = pointer
    self.name = name
    byteCount = unsafe Int(EVP_MD_get_size(pointer))
  }
}
