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
