internal import VaultCrypto

/// Sealed data by itself, for a fuzzer: under keys that are handed in, without a vault.
@_spi(Testing)
public enum DataProbe {
  /// What begins to seal a stream under the first of these keys.
  ///
  /// - Parameter dataKeys: the member of a vault's contents, with its quotation marks.
  public static func encryptor(dataKeys: [UInt8], context: [UInt8]) -> DataEncryptor? {
    guard let keys = keys(dataKeys) else { return nil }
    return try? keys.encryptor(context: context, random: .system)
  }

  /// What opens the stream of these first bytes.
  ///
  /// - Throws: as `Vault.decryptor(header:context:)`.
  public static func decryptor(
    dataKeys: [UInt8], header: [UInt8], context: [UInt8]
  ) throws(VaultError) -> DataDecryptor? {
    let header = try DataHeader(parsing: header)
    guard let keys = keys(dataKeys) else { return nil }
    return try withCrypto { () throws(CryptoError) in
      try keys.decryptor(for: header, context: context)
    }
  }

  private static func keys(_ text: [UInt8]) -> DataKeys? {
    try? DataKeys(parsing: unsafe text.span.bytes, 0..<text.count)
  }
}
