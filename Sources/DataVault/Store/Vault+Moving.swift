internal import FileLayer
public import SystemPackage

/// Copies and moves of vaults between stores and files, with the same bytes everywhere.
extension Vault {
  /// Copies a vault to another store, byte for byte; needs no password.
  ///
  /// Before writing, the bytes are verified as far as possible without a password. Afterwards they
  /// are read back. The copy is durable on return, and the original stays. Both open with the same
  /// password, and both hold the key of a bound database: use only one of them from then on.
  ///
  /// - Throws: `doesNotExist`; `alreadyExists` if the other store has a vault with this id, which
  ///   is never replaced; `damaged`, `newerVersion`; the errors of reading and writing a store.
  public static func copy(
    _ id: VaultID, from source: any VaultStore, to target: any VaultStore
  ) async throws(VaultError) {
    try await onBlockingThread("datavault.mover") { () throws(VaultError) in
      try source.copy(id, to: target)
    }
  }

  /// Moves a vault to another store, byte for byte; needs no password.
  ///
  /// It copies the vault as ``copy(_:from:to:)`` does and then removes the original, under one
  /// lock. After an interruption the vault is in one store or in both.
  ///
  /// - Throws: the errors of ``copy(_:from:to:)``; the errors of removing, with the copy in place.
  public static func move(
    _ id: VaultID, from source: any VaultStore, to target: any VaultStore
  ) async throws(VaultError) {
    try await onBlockingThread("datavault.mover") { () throws(VaultError) in
      try source.move(id, to: target)
    }
  }

  /// Writes a vault to a new file, byte for byte; needs no password.
  ///
  /// The file has mode 0600. It gets its name when it is complete and durable.
  ///
  /// - Throws: `doesNotExist`; `alreadyExists` if the path exists; `damaged`, `newerVersion`;
  ///   `writeFailed`; the errors of reading a store.
  public static func export(
    _ id: VaultID, from store: any VaultStore, to path: FilePath
  ) async throws(VaultError) {
    try await onBlockingThread("datavault.mover") { () throws(VaultError) in
      try store.export(id, to: path, in: LinuxFileSystem())
    }
  }

  /// Loads an exported vault from its file, or a vault from the file of a ``FileVaultStore``.
  ///
  /// - Throws: `doesNotExist` if the file does not exist; `unreadable`, also for a symbolic link;
  ///   `damaged`, also for a directory or a device; `newerVersion`.
  public static func loadExportedVault(at path: FilePath) async throws(VaultError) -> ExportedVault
  {
    try await onBlockingThread("datavault.mover") { () throws(VaultError) in
      try ExportedVault(loading: path)
    }
  }

  /// Adds an exported vault to a store, byte for byte; needs no password.
  ///
  /// - Throws: `alreadyExists` if the store has a vault with this id, which is never replaced; the
  ///   errors of writing a store.
  public static func importVault(
    _ exported: ExportedVault, into store: any VaultStore
  ) async throws(VaultError) {
    try await onBlockingThread("datavault.mover") { () throws(VaultError) in
      try store.add(exported.bytes, exported.id)
    }
  }
}

/// A vault outside of any store, verified as far as possible without its password.
public struct ExportedVault: Sendable {
  /// The id with which the vault was created; the seal covers it.
  public let id: VaultID
  /// False only under the standard credentials.
  public var isSecured: Bool { file.clear.isSecured }
  let bytes: [UInt8]
  let file: VaultFile
  /// The path of the file, for messages.
  let place: String

  fileprivate init(loading path: FilePath) throws(VaultError) {
    let found: [UInt8]?
    do throws(FileError) {
      found = try LinuxFileSystem().read(path, maximumByteCount: VaultFile.maximumByteCount)
    } catch {
      switch error.errno {
      case .fileTooLarge:
        throw VaultError(
          .damaged, "\(path) is larger than the maximum of \(VaultFile.maximumByteCount) bytes",
          underlying: error)
      case .invalidArgument:
        throw VaultError(
          .damaged, "\(path) is not a regular file, so it is not a vault", underlying: error)
      default: throw .unreadable(error)
      }
    }
    guard let found else { throw VaultError(.doesNotExist, "file \(path) not found") }
    bytes = found
    place = path.string
    do throws(FormatFault) {
      file = try VaultFile(parsing: bytes)
      guard let id = try? VaultID(file.clear.vaultID) else {
        throw FormatFault("vault", "the vault's id is invalid")
      }
      self.id = id
    } catch {
      throw .invalidFile(error, at: place)
    }
  }
}

extension Vault {
  /// Adds an exported vault to a store under another id and returns it unlocked.
  ///
  /// The seal covers the id, so this needs a secret that opens the vault. The contents are sealed
  /// again; the keys and slots stay. Two vaults that hold the key of one database invalidate each
  /// other's changes: use only one of them from then on.
  ///
  /// A failed attempt is not counted. A file outside of any store has no record of attempts, and
  /// anyone who has the file can try as often as its derivation allows.
  ///
  /// - Throws: `alreadyExists` if the store has a vault with this id, which is never replaced; the
  ///   errors of ``unlock(with:)`` for the exported vault; the errors of writing a store.
  public static func importVault(
    _ exported: ExportedVault, as id: VaultID, with secret: borrowing VaultSecret,
    into store: any VaultStore
  ) async throws(VaultError) -> Vault {
    try await importVault(
      exported, as: id, with: secret, into: store, parameters: VaultParameters())
  }

  package static func importVault(
    _ exported: ExportedVault, as id: VaultID, with secret: borrowing VaultSecret,
    into store: any VaultStore, parameters: VaultParameters
  ) async throws(VaultError) -> Vault {
    let vault = Vault(id: id, store: store, parameters: parameters)
    try await vault.add(exported, with: secret)
    return vault
  }

  private func add(
    _ exported: ExportedVault, with secret: borrowing VaultSecret
  ) throws(VaultError) {
    try store.requireAbsence(of: id)
    try requireAcceptableCosts(in: exported.file.key)
    let contentKey = try contentKey(of: exported.file.key, with: secret)
    let opened: OpenVault
    do throws(FormatFault) {
      opened = try OpenVault(exported.file, contentKey: contentKey)
    } catch {
      throw .invalidFile(error, at: exported.place)
    }
    try opened.requireUsable(secret, of: exported.id, now: parameters.now())
    var draft = opened.draft()
    draft.clear.vaultID = id.rawValue
    let lock = try store.lockForNewVault(id)
    defer { lock.release() }
    adopt(try write(draft))
  }
}
