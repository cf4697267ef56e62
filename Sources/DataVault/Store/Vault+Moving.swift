internal import FileLayer
public import SystemPackage

/// Vaults on their way between stores, and to files and back: the same bytes everywhere.
extension Vault {
  /// Copies a vault to another store, byte for byte; no password is needed.
  ///
  /// The bytes are verified as far as that goes without a password before they are written, and
  /// read back afterwards. The copy is durable on return; the original stays. Both open with the
  /// same password, and both keep the key of a bound database: use one of them from then on.
  ///
  /// - Throws: `doesNotExist`; `alreadyExists` when the other store has a vault of this id, which is
  ///   never replaced; `damaged`, `newerVersion`; what reading and writing a store throws.
  public static func copy(
    _ id: VaultID, from source: any VaultStore, to target: any VaultStore
  ) async throws(VaultError) {
    try await VaultMover().copy(id, from: source, to: target)
  }

  /// Moves a vault to another store, byte for byte; no password is needed.
  ///
  /// The copy is made as by ``copy(_:from:to:)``, then the original is removed; nobody can change it
  /// in between. Interrupted, both are there, or one.
  ///
  /// - Throws: as ``copy(_:from:to:)``; what removing throws, with the copy in its place.
  public static func move(
    _ id: VaultID, from source: any VaultStore, to target: any VaultStore
  ) async throws(VaultError) {
    try await VaultMover().move(id, from: source, to: target)
  }

  /// Writes a vault into a new file, byte for byte; no password is needed.
  ///
  /// The file has mode 0600 and gets its name when it is whole and durable.
  ///
  /// - Throws: `doesNotExist`; `alreadyExists` when there is something at the path; `damaged`,
  ///   `newerVersion`; `writeFailed`; what reading a store throws.
  public static func export(
    _ id: VaultID, from store: any VaultStore, to path: FilePath
  ) async throws(VaultError) {
    try await VaultMover().export(id, from: store, to: path, in: LinuxFileSystem())
  }

  /// The vault that an exported file, or one of a ``FileVaultStore``, holds.
  ///
  /// - Throws: `doesNotExist` when there is no such file; `unreadable`, also for a symbolic link;
  ///   `damaged`, also for a directory or a device; `newerVersion`.
  public static func exported(at path: FilePath) async throws(VaultError) -> ExportedVault {
    try await VaultMover().exported(at: path, in: LinuxFileSystem())
  }

  /// Makes a vault of an exported one, byte for byte; no password is needed.
  ///
  /// - Throws: `alreadyExists` when the store has a vault of this id, which is never replaced; what
  ///   writing a store throws.
  public static func importVault(
    _ exported: ExportedVault, into store: any VaultStore
  ) async throws(VaultError) {
    try await VaultMover().add(exported.bytes, exported.id, to: store)
  }
}

/// A vault outside of any store, verified as far as that goes without its password.
public struct ExportedVault: Sendable {
  /// The id under which the vault was made; it is part of what is sealed.
  public let id: VaultID
  /// False only under the standard credentials.
  public var isSecured: Bool { file.clear.isSecured }
  let bytes: [UInt8]
  let file: VaultFile

  init(verifying bytes: [UInt8], from place: String) throws(VaultError) {
    do throws(FormatFault) {
      file = try VaultFile(parsing: bytes)
    } catch {
      throw .refused(error, at: place)
    }
    do throws(VaultError) {
      id = try VaultID(file.clear.vaultID)
    } catch {
      throw .refused(FormatFault("vault", "the vault has an id that none can have"), at: place)
    }
    self.bytes = bytes
  }
}
