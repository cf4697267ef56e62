internal import Glibc
internal import VaultCrypto

extension KeySlot {
  /// A new password slot around the content key.
  static func password(
    _ credentials: borrowing Credentials, wrapping contentKey: borrowing SecretBytes,
    parameters: VaultParameters
  ) throws(CryptoError) -> KeySlot {
    let salt = parameters.random.bytes(count: saltByteCount)
    let key = try wrappingKey(
      credentials, salt: salt, iterationCount: parameters.iterationCount)
    return KeySlot(
      method: .password(salt: salt, iterationCount: parameters.iterationCount),
      wrappedKey: try AES256KeyWrap.wrap(contentKey, with: key))
  }

  /// RFC 7518, section 4.8: the salt is UTF8(alg), 00, p2s; then the caller's salt.
  static func wrappingKey(
    _ credentials: borrowing Credentials, salt: [UInt8], iterationCount: Int
  ) throws(CryptoError) -> SecretBytes {
    let prefix = Array("PBES2-HS512+A256KW".utf8) + [0] + salt
    var whole = [UInt8](repeating: 0, count: prefix.count + credentials.salt.byteCount)
    whole.replaceSubrange(prefix.indices, with: prefix)
    credentials.salt.withBytes { callerSalt in
      for offset in 0..<callerSalt.byteCount {
        whole[prefix.count + offset] = callerSalt.byte(offset)
      }
    }
    // The caller's salt is a secret too; this array is the only copy outside of SecretBytes.
    defer {
      unsafe whole.withUnsafeMutableBytes { bytes in
        if let start = bytes.baseAddress { unsafe explicit_bzero(start, bytes.count) }
      }
    }
    return try PBKDF2.sha512(
      password: credentials.password, salt: whole, iterationCount: iterationCount, byteCount: 32)
  }
}
