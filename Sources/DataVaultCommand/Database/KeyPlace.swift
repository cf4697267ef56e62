internal import DataVault
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// Where the key of a database file is; never the terminal, as nobody types 32 bytes.
enum KeyPlace {
  case file(String)
  case descriptor(Int32)
  /// An item of a vault, written `VAULT/NAME`.
  case item(String)

  /// The 32 bytes of a sealed database's key.
  ///
  /// - Parameter access: asked for only where the key is an item.
  func readKey(_ access: () throws -> VaultAccess) async throws -> SecretBytes {
    switch self {
    case .file(let path): try KeySource.file(FilePath(path)).read()
    case .descriptor(let number): try KeySource.descriptor(number).read()
    case .item(let text): try await readItem(text, access())
    }
  }

  /// A passphrase, without the final newline of a file.
  func readPassphrase(_ access: () throws -> VaultAccess) async throws -> SecretBytes {
    switch self {
    case .file(let path): try SecretSource.file(path).read()
    case .descriptor(let number): try SecretSource.descriptor(number).read()
    case .item(let text): try await readItem(text, access())
    }
  }

  private func readItem(_ text: String, _ access: VaultAccess) async throws -> SecretBytes {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      throw CommandFailure(
        .usage, "\(text) does not name an item", hint: "write VAULT/NAME")
    }
    let vault = try await access.open(VaultID(String(parts[0])))
    return try await vault.item(String(parts[1])).bytes.copy()
  }
}
