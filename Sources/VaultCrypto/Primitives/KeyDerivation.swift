internal import COpenSSL
internal import Glibc

/// A key derivation function, fetched from OpenSSL once and kept for the life of the process.
@safe struct KeyDerivation: @unchecked Sendable {
  // Sendable: an EVP_KDF is immutable after the fetch.
  private let pointer: OpaquePointer?

  static let hkdf = KeyDerivation("HKDF")
  static let oneStep = KeyDerivation("SSKDF")
  static let pbkdf2 = KeyDerivation("PBKDF2")

  private init(_ name: String) {
    unsafe pointer = EVP_KDF_fetch(nil, name, nil)
  }

  /// Derives a key that fills `target`; returns false if OpenSSL failed.
  ///
  /// The parameters point to the caller's memory. OpenSSL wipes its own copies with the context.
  func derive(
    _ target: UnsafeMutableRawBufferPointer, _ parameters: [OSSL_PARAM]
  ) -> Bool {
    guard let pointer = unsafe pointer, let context = unsafe EVP_KDF_CTX_new(pointer) else {
      return false
    }
    defer { unsafe forget(context) }
    let all = unsafe parameters + [OSSL_PARAM_construct_end()]
    return unsafe EVP_KDF_derive(context, target.octets, target.count, all) == 1
  }

  /// Releases a context after removing the salt that OpenSSL keeps in it.
  ///
  /// OpenSSL wipes key and password with the context, but a salt only when another one replaces it.
  private func forget(_ context: OpaquePointer) {
    let none: [UInt8] = [0]
    unsafe none.withUnsafeBytes { none in
      let parameters = unsafe [OSSL_PARAM("salt", none), OSSL_PARAM_construct_end()]
      _ = unsafe EVP_KDF_CTX_set_params(context, parameters)
    }
    unsafe EVP_KDF_CTX_free(context)
  }
}

extension OSSL_PARAM {
  /// Makes an OSSL_PARAM(3), for parameters without a constructor of their own.
  ///
  /// OpenSSL reads the name through a pointer later, so the name must be static. The pointer that
  /// Swift makes from a String for one call is invalid after that call.
  init(
    _ name: StaticString, _ data: UnsafeRawBufferPointer, _ type: Int32 = OSSL_PARAM_OCTET_STRING
  ) {
    unsafe self.init(
      key: UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self),
      data_type: UInt32(type), data: UnsafeMutableRawPointer(mutating: data.baseAddress),
      data_size: data.count, return_size: -1)
  }

  /// The parameter that names a hash function.
  init(_ digest: Digest) {
    let name = unsafe UnsafeRawBufferPointer(start: digest.name, count: strlen(digest.name))
    unsafe self.init("digest", name, OSSL_PARAM_UTF8_STRING)
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes in the type of OpenSSL's functions.
  var octets: UnsafePointer<UInt8>? { unsafe baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
  /// The bytes in the type of OpenSSL's functions.
  var octets: UnsafeMutablePointer<UInt8>? {
    unsafe baseAddress?.assumingMemoryBound(to: UInt8.self)
  }
}
