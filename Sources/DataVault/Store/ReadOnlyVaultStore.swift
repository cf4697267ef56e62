package import SystemPackage

/// The vaults of a directory that nothing writes to, such as a backup.
///
/// Nothing is written, so failed attempts to open a vault are not counted: anyone who has the files can copy them and
/// try as often as their derivation allows. The vaults have no sessions.
package struct ReadOnlyVaultStore: VaultStore {
  private let files: FileVaultStore

  /// The vaults of `<home>/vaults`.
  package init(home: FilePath) { files = FileVaultStore(home: home) }

  package func ids() throws(VaultError) -> [VaultID] { try files.ids() }

  package func read(_ id: VaultID) throws(VaultError) -> [UInt8]? { try files.read(id) }

  package func location(of id: VaultID) -> String { files.location(of: id) }

  package func sessionIdentity(of id: VaultID) -> String? { nil }

  package func write(_ bytes: [UInt8], for id: VaultID) throws(VaultError) { throw refusal }

  package func remove(_ id: VaultID) throws(VaultError) { throw refusal }

  package func retire(_ id: VaultID) throws(VaultError) -> String { throw refusal }

  package func prepare() throws(VaultError) { throw refusal }

  /// A lock without effect: there is nothing to protect.
  package func lock(_ id: VaultID) throws(VaultError) -> VaultStoreLock { VaultStoreLock {} }

  private var refusal: VaultError {
    VaultError(
      .writeFailed, "the vaults in \(files.directory) are not changed",
      hint: "restore the backup, and change that home")
  }
}
