internal import ArgumentParser
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// What opens a database file, and the vault that may keep its key.
struct DatabaseAccess: ParsableArguments {
  @OptionGroup var keyOptions: KeyOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try DescriptorRules.check(keyOptions.choice.descriptors + credentials.descriptors)
  }

  /// Two keys and a password cannot come from one descriptor.
  func checkDescriptors(with newKey: NewKeyOptions) throws {
    try DescriptorRules.check(
      keyOptions.choice.descriptors + newKey.choice.descriptors + credentials.descriptors)
  }

  /// The key that was named.
  func key() async throws -> SecretBytes {
    try await read(keyOptions.choice.demand())
  }

  /// A sealed database's key from anywhere, out of a vault of this home where it is an item.
  func read(_ place: KeyPlace) async throws -> SecretBytes {
    try await place.readKey(vaultAccess)
  }

  /// A file of a format with the key that was named for it.
  func file(
    _ format: DatabaseFormat, at path: FilePath, key: KeyChoice
  ) async throws -> DatabaseFile {
    switch format {
    case .sealed:
      return .sealed(path, key: try await read(key.demand()))
    case .sqlcipher4:
      let passphrase = try await key.demand().readPassphrase(vaultAccess)
      return .sqlcipher4(path, key: try SQLCipherKey(passphrase))
    case .plain:
      guard key.place == nil else {
        throw CommandFailure(
          .usage, "a plain database has no key", hint: "leave --\(key.prefix)key- out")
      }
      return .plain(path)
    }
  }

  private func vaultAccess() throws -> VaultAccess {
    VaultAccess(home: try home.home(), credentials: credentials)
  }
}
