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

extension Vault {
  /// Makes a vault of an exported one under another id; it comes back unlocked.
  ///
  /// The id is part of what is sealed, so this takes what opens the vault: its contents are sealed
  /// anew, its keys and what opens it stay. Two vaults that keep the key of one database would
  /// disown each other's changes: use one of them from then on.
  ///
  /// A wrong secret counts nowhere: a file outside of any store has no record of attempts, and whoever
  /// has the file can try as often, and anywhere, as its derivation allows.
  ///
  /// - Throws: `alreadyExists` when the store has a vault of this id, which is never replaced; what
  ///   ``unlock(with:)`` throws for the exported vault; what writing a store throws.
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
    try await vault.take(exported, with: secret)
    return vault
  }

  private func take(
    _ exported: ExportedVault, with secret: borrowing VaultSecret
  ) throws(VaultError) {
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
    try requireAcceptableCosts(in: exported.file.key)
    let open = try open(
      exported.file, contentKey: contentKey(of: exported.file.key, with: secret))
    try open.requireUsable(secret, of: exported.id, now: parameters.now())
    var draft = open.draft()
    draft.clear.vaultID = id.rawValue
    try store.prepare()
    let lock = try store.lock(id)
    defer { lock.release() }
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
    // Attempts on an earlier vault of this name, of which a deletion was interrupted.
    try store.removeAttempts(id)
    adopt(try write(draft))
  }
}

/// Carries the bytes of vaults from place to place, where blocking is allowed.
actor VaultMover {
  private nonisolated let executor = BlockingExecutor(label: "datavault.mover")

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  func copy(
    _ id: VaultID, from source: any VaultStore, to target: any VaultStore
  ) throws(VaultError) {
    // The source may be one that nothing can be written to, a lock neither.
    try add(try verifiedBytes(id, source), id, to: target)
  }

  func move(
    _ id: VaultID, from source: any VaultStore, to target: any VaultStore
  ) throws(VaultError) {
    // Two names of one place would wait for each other, and then remove the only vault.
    _ = try verifiedBytes(id, source)
    try requireAbsence(id, in: target)
    let lock = try source.lock(id)
    defer { lock.release() }
    try add(try verifiedBytes(id, source), id, to: target)
    try source.remove(id)
  }

  /// Makes a vault of bytes that were verified.
  func add(
    _ bytes: [UInt8], _ id: VaultID, to target: any VaultStore
  ) throws(VaultError) {
    try requireAbsence(id, in: target)
    try target.prepare()
    let lock = try target.lock(id)
    defer { lock.release() }
    try requireAbsence(id, in: target)
    // Attempts on an earlier vault of this name, of which a deletion was interrupted.
    try target.removeAttempts(id)
    try target.write(bytes, for: id)
    guard try target.read(id) == bytes else {
      throw VaultError(
        .writeFailed, "what \(target.location(of: id)) now holds is not what was written there",
        hint: "the original is as it was; remove the copy")
    }
  }

  func export(
    _ id: VaultID, from store: any VaultStore, to path: FilePath, in fileSystem: any FileSystem
  ) throws(VaultError) {
    let bytes = try verifiedBytes(id, store)
    do throws(FileError) {
      guard try fileSystem.status(of: path) == nil else {
        throw FileError(.create, path, .fileExists)
      }
      try fileSystem.make(path, with: bytes)
    } catch {
      guard error.errno == .fileExists else { throw .writeFailed(error) }
      throw VaultError(
        .alreadyExists, "there is a file \(path) already",
        hint: "name a new one; nothing is ever replaced", underlying: error)
    }
  }

  func exported(
    at path: FilePath, in fileSystem: any FileSystem
  ) throws(VaultError) -> ExportedVault {
    let bytes: [UInt8]?
    do throws(FileError) {
      bytes = try fileSystem.read(path, maximumByteCount: VaultFile.maximumByteCount)
    } catch {
      switch error.errno {
      case .fileTooLarge:
        throw VaultError(.damaged, "\(path) is larger than any vault", underlying: error)
      case .invalidArgument:
        throw VaultError(
          .damaged, "\(path) is not a regular file, and so no vault", underlying: error)
      default: throw .unreadable(error)
      }
    }
    guard let bytes else { throw VaultError(.doesNotExist, "there is no file \(path)") }
    return try ExportedVault(verifying: bytes, from: path.string)
  }

  private func verifiedBytes(
    _ id: VaultID, _ store: any VaultStore
  ) throws(VaultError) -> [UInt8] {
    guard let bytes = try store.read(id) else { throw .doesNotExist(id, in: store) }
    _ = try VaultFile(bytes, of: id, in: store)
    return bytes
  }

  private func requireAbsence(_ id: VaultID, in store: any VaultStore) throws(VaultError) {
    guard try store.read(id) == nil else { throw .alreadyExists(id, in: store) }
  }
}
