internal import DataVault
internal import FileLayer
internal import GRDB
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// Runs the protocols of a connection profile, one at a time, on a thread that can wait for locks
/// and disks.
///
/// Across processes `<database>-lock` has the same effect.
actor ProfileCoordinator: BlockingActor {
  private let vault: Vault
  private let name: String
  let path: FilePath
  let fileSystem: any FileSystem
  let baseVFS: String
  let executor = BlockingExecutor(label: "datavault.profile-coordinator")

  init(vault: Vault, name: String, path: FilePath, fileSystem: any FileSystem, baseVFS: String) {
    self.vault = vault
    self.name = name
    self.path = path
    self.fileSystem = fileSystem
    self.baseVFS = baseVFS
  }

  func set(_ key: borrowing SecretBytes) async throws(VaultedDatabaseError) {
    try Self.check(key)
    try await locked {
      if let stored = try await storedKeys() {
        let current = try currentKey(of: stored)
        guard SecretBytes.isEqual(current, key) else {
          throw VaultedDatabaseError(
            .keyExists, "the profile of \(path) already has another key",
            hint: "change it with changeEncryptionKey, or remove the item to give up the database")
        }
        return
      }
      if let header = try header(), try !header.matches(key: key) { throw databaseMismatch }
      try await store(DatabaseKeys(current: key.copy()))
    }
  }

  func key() async throws(VaultedDatabaseError) -> SecretBytes {
    do {
      return try currentKey(of: try await keys())
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  func openPool(
    configuration: Configuration, durability: Durability, creation: SealedDatabase.Creation
  ) async throws(VaultedDatabaseError) -> DatabasePool {
    try await locked {
      do {
        do {
          try await settle()
        } catch let error as SealedDatabaseError where error.leavesOldKeyUsable {
          // The current key still opens the database; the next opening tries again.
        }
        return try SealedDatabase.openPool(
          at: path, key: try currentKey(of: try await keys()), configuration: configuration,
          durability: durability, creation: creation, over: baseVFS)
      } catch {
        throw VaultedDatabaseError(profile: error)
      }
    }
  }

  // MARK: The item and the file

  static func check(_ key: borrowing SecretBytes) throws(VaultedDatabaseError) {
    guard key.byteCount == DatabaseKeys.keyByteCount else {
      throw VaultedDatabaseError(
        .invalidArgument, "the encryption key has \(key.byteCount) bytes", hint: "use 32 bytes")
    }
  }

  /// Runs a protocol under the lock of the database.
  private func locked<Result: Sendable>(
    _ body: () async throws -> Result
  ) async throws(VaultedDatabaseError) -> Result {
    try await ProtocolLock.hold(FilePath(path.string + "-lock"), in: fileSystem, body)
  }

  /// The vault's keys; nil if none was set.
  private func storedKeys() async throws -> DatabaseKeys? {
    do {
      let item = try await vault.item(name)
      guard let keys = DatabaseKeys(item: item) else {
        throw VaultedDatabaseError(
          .invalidArgument,
          "item '\(name)', which the profile of \(path) names, is not an encryption key",
          hint: "use another name")
      }
      return keys
    } catch let error as VaultError where error.code == .itemNotFound {
      return nil
    }
  }

  func keys() async throws -> DatabaseKeys {
    guard let keys = try await storedKeys() else {
      throw VaultedDatabaseError(
        .keyMissing, "the profile of \(path) has no key", hint: "set one with setEncryptionKey")
    }
    return keys
  }

  /// Stores keys; durable on return.
  func store(_ keys: consuming DatabaseKeys) async throws {
    try await vault.set(keys.itemBytes(), kind: .binary, for: name)
  }

  /// The header of the database; nil if there is none yet.
  func header() throws -> SealedHeader? {
    switch try SealedVFS.inspect(path, over: baseVFS) {
    case .absent, .empty: return nil
    case .sealed(let header): return header
    case .plainSQLite: throw VaultedDatabaseError.refusal(.plainDatabase, path)
    case .newerVersion: throw VaultedDatabaseError.refusal(.newerVersion, path)
    case .foreign: throw databaseMismatch
    }
  }

  /// The key that fits the database; without a database, the key for making it.
  private func currentKey(of keys: borrowing DatabaseKeys) throws -> SecretBytes {
    guard keys.hasPending(), let header = try header() else { return keys.current.copy() }
    return try keys.key(for: header)
  }

  var databaseMismatch: VaultedDatabaseError {
    VaultedDatabaseError(
      .databaseMismatch, "the database \(path) is not under a key of this profile",
      hint: "set the key that it was made with, or restore vault and database together")
  }
}

extension VaultedDatabaseError {
  /// The error of opening through a profile, where a wrong key means another database.
  fileprivate init(profile error: any Error) {
    self.init(any: error)
    guard let error = error as? SealedDatabaseError, error.code == .wrongKey else { return }
    self.init(.databaseMismatch, error.message, hint: error.hint, underlying: error)
  }
}

extension ProfileCoordinator {
  func change(
    to key: borrowing SecretBytes, progress: (PageProgress) -> Void
  ) async throws(VaultedDatabaseError) {
    try Self.check(key)
    try await locked {
      guard try header() != nil else {
        throw VaultedDatabaseError(
          .databaseMissing, "the database \(path) does not exist",
          hint: "set the first key with setEncryptionKey")
      }
      let wasInterrupted = try await self.keys().hasPending()
      try await settle()
      let keys = try await keys()
      // The same change, repeated after a crash: it has just been finished.
      if wasInterrupted, SecretBytes.isEqual(keys.current, key) { return }
      let database = try exclusiveConnection(keys.current, ProtocolLock.connectionBusyTimeout)
      try await database.changeKey(to: key, fileSystem: fileSystem, progress: progress) {
        try await store(DatabaseKeys(current: keys.current.copy(), pending: key.copy()))
      }
      try await store(DatabaseKeys(current: key.copy()))
    }
  }

  /// Finishes a change of key that was interrupted after the vault had stored the new key.
  ///
  /// - Throws: a `SealedDatabaseError` with `leavesOldKeyUsable`, if the old key still opens the
  ///   database.
  func settle() async throws {
    let keys = try await keys()
    switch keys.pending {
    case .none: return
    case .some(let pending):
      guard let header = try header() else { return }
      if try header.matches(key: pending) {
        // The rename is possibly not durable yet, and the old file's key is deleted next.
        try fileSystem.synchronizeDirectory(path.containingDirectory)
      } else {
        let database = try exclusiveConnection(keys.current, .zero)
        try database.reencrypt(to: pending, fileSystem: fileSystem)
      }
      try await store(DatabaseKeys(current: pending.copy()))
    }
  }

  private func exclusiveConnection(
    _ key: borrowing SecretBytes, _ busyTimeout: Duration
  ) throws -> ExclusiveConnection {
    guard try header()?.matches(key: key) == true else { throw databaseMismatch }
    return try ExclusiveConnection(to: path, key: key, over: baseVFS, busyTimeout: busyTimeout)
  }
}
