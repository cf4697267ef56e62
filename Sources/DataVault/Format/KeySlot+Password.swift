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
    let whole = ByteWriter.secret { writer in
      for byte in prefix { writer.append(byte) }
      credentials.salt.withBytes { writer.append($0, 0..<$0.byteCount) }
    }
    return try PBKDF2.sha512(
      password: credentials.password, salt: whole, iterationCount: iterationCount, byteCount: 32)
  }
}
