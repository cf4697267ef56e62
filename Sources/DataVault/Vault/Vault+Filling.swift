public import VaultCrypto

extension Vault {
  /// Stores many binary items in one durable write, for measurements of large vaults.
  ///
  /// Stored one by one, each item would rewrite all others.
  ///
  /// - Parameters:
  ///   - names: 1 to 255 bytes of UTF-8 each.
  ///   - value: the value of each item.
  /// - Throws: `locked`, `writeFailed`; the errors of reading.
  @_spi(Testing)
  public func fill(_ names: [String], with value: borrowing SecretBytes) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      for name in names {
        draft.contents.items = draft.contents.items.setting(
          Array(name.utf8), to: value, kind: .binary)
      }
    }
  }
}
