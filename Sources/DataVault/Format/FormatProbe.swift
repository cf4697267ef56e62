internal import VaultCrypto

/// The parsers by themselves, for a fuzzer: what is read, written and read again stays the same.
@_spi(Testing)
public enum FormatProbe {
  /// Whether these bytes are a vault file, as far as that can be told without a password.
  public static func isFile(_ bytes: [UInt8]) -> Bool {
    (try? VaultFile(parsing: bytes)) != nil
  }

  /// The bytes with the tail that belongs behind them, as somebody writes it who has no key.
  public static func fileWithTail(_ head: [UInt8]) -> [UInt8] {
    head + ((try? FileTail(following: head).bytes) ?? [])
  }

  /// What a vault writes of contents that it reads; nil for what it refuses.
  public static func contents(_ text: [UInt8]) -> [UInt8]? {
    guard let contents = try? VaultContents(parsing: unsafe text.span.bytes) else { return nil }
    return contents.text().withBytes { $0.array(0..<$0.byteCount) }
  }
}
