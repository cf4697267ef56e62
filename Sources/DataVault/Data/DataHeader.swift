internal import VaultCrypto

/// The first 44 bytes of sealed data: `docs/sealed-data-format.md`.
struct DataHeader {
  static let byteCount = 44
  static let keyIDByteCount = 8
  static let saltByteCount = 32
  /// OpenSSL's HKDF takes 32 KiB for all that it binds, its first releases 2 KiB.
  static let maximumContextByteCount = 1024
  private static let magic = Array("DVD".utf8)
  private static let version: UInt8 = 1

  let bytes: [UInt8]
  var keyID: [UInt8] { Array(bytes[4..<12]) }

  /// A header for new data.
  init(keyID: [UInt8], random: RandomSource) {
    bytes = Self.magic + [Self.version] + keyID + random.bytes(count: Self.saltByteCount)
  }

  /// Reads a header.
  ///
  /// - Throws: `truncated`, `notSealedData`, `newerVersion`.
  init(parsing bytes: [UInt8]) throws(VaultError) {
    guard bytes.count >= Self.byteCount else { throw .truncatedData }
    guard bytes.starts(with: Self.magic) else {
      throw VaultError(.notSealedData, "the data is not what a vault has sealed")
    }
    guard bytes[Self.magic.count] == Self.version else {
      throw VaultError(
        .newerVersion,
        "the data has format version \(bytes[Self.magic.count]), this software reads \(Self.version)",
        hint: "open it with the version of this software that sealed it")
    }
    self.bytes = Array(bytes.prefix(Self.byteCount))
  }

  /// The key of this data alone.
  func key(under dataKey: borrowing SecretBytes, context: [UInt8]) throws(CryptoError)
    -> SecretBytes
  {
    try HKDF.sha512(
      inputKey: dataKey, salt: bytes, info: Array("datavault/data".utf8) + [0] + context,
      byteCount: 32)
  }

  /// What names a data key in headers.
  static func keyID(of dataKey: borrowing SecretBytes) throws(CryptoError) -> [UInt8] {
    let id = try HKDF.sha512(
      inputKey: dataKey, salt: [], info: Array("datavault/data-id".utf8),
      byteCount: keyIDByteCount)
    return unsafe id.withUnsafeBytes { unsafe Array($0) }
  }
}

extension VaultError {
  static var truncatedData: VaultError {
    VaultError(
      .truncated, "the sealed data ends before its end",
      hint: "what was read of it is authentic, but not all of it")
  }
}
