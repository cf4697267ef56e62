internal import VaultCrypto

/// One file's header and the ciphers that belong to it, for one connection.
final class FileKeys {
  let header: SealedHeader
  let page: PageCipher
  let journal: PageCipher
  let frameHeader: AES256XTS

  init(header: SealedHeader, key: borrowing SecretBytes) throws(CryptoError) {
    self.header = header
    page = try PageCipher(.page, key: key, header: header)
    journal = try PageCipher(.journal, key: key, header: header)
    frameHeader = try AES256XTS(key: DerivedKeys.frameHeader(of: key, fileID: header.fileID))
  }
}

/// The keys of one file: `docs/reference/sealed-database-format.md`, "Keys".
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
    return try derive(name, from: key, fileID: fileID, byteCount: MessageCipher.keyByteCount)
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

/// The use of a sealed page; it is the first byte of the additional data.
///
/// Database and log share one role and one key, so that a checkpoint can copy sealed pages.
enum Role: UInt8 {
  case page = 1
  case journal = 2
  /// A block of a temporary file; each such file has a random key of its own.
  case temporary = 3
}
