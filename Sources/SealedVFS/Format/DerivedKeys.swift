internal import VaultCrypto

/// The keys of one file: `docs/sealed-database-format.md`, "Keys".
enum DerivedKeys {
  static func page(
    _ role: Role, of key: borrowing SecretBytes, fileID: [UInt8]
  ) throws(CryptoError) -> SecretBytes {
    let name =
      switch role {
      case .page: "page"
      case .journal: "journal"
      case .temporary: "temporary"
      }
    return try derive(name, from: key, fileID: fileID, byteCount: XAES256GCM.keyByteCount)
  }

  static func frameHeader(
    of key: borrowing SecretBytes, fileID: [UInt8]
  ) throws(CryptoError) -> SecretBytes {
    try derive("wal-header", from: key, fileID: fileID, byteCount: AES256XTS.keyByteCount)
  }

  static func keyCheck(
    of key: borrowing SecretBytes, fileID: [UInt8]
  ) throws(CryptoError) -> [UInt8] {
    let secret = try derive("key-check", from: key, fileID: fileID, byteCount: 4)
    return unsafe secret.withUnsafeBytes { unsafe Array($0) }
  }

  private static func derive(
    _ name: String, from key: borrowing SecretBytes, fileID: [UInt8], byteCount: Int
  ) throws(CryptoError) -> SecretBytes {
    try HKDF.sha512(
      inputKey: key, salt: fileID, info: Array("datavault/\(name)".utf8), byteCount: byteCount)
  }
}
