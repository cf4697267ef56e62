internal import FileLayer
internal import SystemPackage

/// Operations on whole vaults; they block, as all calls of a store do.
extension VaultStore {
  /// The vault's bytes.
  ///
  /// - Parameter evenDamaged: treats a vault that is too large to read as an empty one.
  /// - Throws: `doesNotExist`; the errors of reading.
  @discardableResult
  func existingBytes(
    of id: VaultID, evenDamaged: Bool = false
  ) throws(VaultError) -> [UInt8] {
    do throws(VaultError) {
      guard let bytes = try read(id) else { throw VaultError.doesNotExist(id, in: self) }
      return bytes
    } catch {
      guard evenDamaged, error.code == .damaged else { throw error }
      return []
    }
  }

  /// The vault's bytes, checked as far as possible without a password.
  private func verifiedBytes(of id: VaultID) throws(VaultError) -> [UInt8] {
    let bytes = try existingBytes(of: id)
    _ = try VaultFile(bytes, of: id, in: self)
    return bytes
  }

  /// - Throws: `alreadyExists`; the errors of reading.
  func requireAbsence(of id: VaultID) throws(VaultError) {
    guard try read(id) == nil else { throw .alreadyExists(id, in: self) }
  }

  /// Prepares the store for a vault that it does not hold, and takes the lock of that vault.
  ///
  /// - Throws: `alreadyExists`; the errors of reading and writing.
  func lockForNewVault(_ id: VaultID) throws(VaultError) -> VaultStoreLock {
    try prepare()
    let lock = try lock(id)
    try requireAbsence(of: id)
    // An interrupted deletion can leave the attempts on an earlier vault with this name.
    try removeAttempts(id)
    return lock
  }

  func delete(
    _ id: VaultID, force: Bool, databaseMightExist: Bool, parameters: VaultParameters
  ) throws(VaultError) {
    try existingBytes(of: id, evenDamaged: force)
    let lock = try lock(id)
    defer { lock.release() }
    let bytes = try existingBytes(of: id, evenDamaged: force)
    if !force {
      let file = try VaultFile(bytes, of: id, in: self)
      guard file.clear.binding == nil || !databaseMightExist else {
        throw VaultError(
          .databaseStillExists, "vault '\(id)' keeps the only key of a database that still exists",
          hint: "delete the database first, or force the deletion and lose the database's contents")
      }
    }
    try remove(id)
    endSession(of: id, parameters: parameters)
  }

  func retire(_ id: VaultID, parameters: VaultParameters) throws(VaultError) -> String {
    try existingBytes(of: id)
    let lock = try lock(id)
    defer { lock.release() }
    try existingBytes(of: id)
    let name = try retire(id)
    endSession(of: id, parameters: parameters)
    return name
  }

  /// Ends the session of a deleted vault, if there is one.
  ///
  /// If the kernel refuses, there is no session. A session that remains opens nothing any more.
  func endSession(of id: VaultID, parameters: VaultParameters) {
    _ = try? SessionKeyLocation(of: id, in: self, parameters: parameters)?.end()
    checkSessionsOfProcesses(of: id, parameters: parameters)
  }
}

/// Copies of a vault's bytes between stores and files.
extension VaultStore {
  func copy(_ id: VaultID, to target: any VaultStore) throws(VaultError) {
    // This store can be read-only, so no lock is taken here.
    try target.add(try verifiedBytes(of: id), id)
  }

  func move(_ id: VaultID, to target: any VaultStore) throws(VaultError) {
    // If both stores are the same place, the move would wait for its own lock, and would then
    // remove the only vault. This check refuses that.
    _ = try verifiedBytes(of: id)
    try target.requireAbsence(of: id)
    let lock = try lock(id)
    defer { lock.release() }
    try target.add(try verifiedBytes(of: id), id)
    try remove(id)
  }

  /// Writes verified bytes to this store, which has no such vault.
  func add(_ bytes: [UInt8], _ id: VaultID) throws(VaultError) {
    try requireAbsence(of: id)
    let lock = try lockForNewVault(id)
    defer { lock.release() }
    try write(bytes, for: id)
    guard try read(id) == bytes else {
      throw VaultError(
        .writeFailed, "the copy at \(location(of: id)) differs from what was written",
        hint: "remove the copy; the original is unchanged")
    }
  }

  func export(
    _ id: VaultID, to path: FilePath, in fileSystem: any FileSystem
  ) throws(VaultError) {
    let bytes = try verifiedBytes(of: id)
    do throws(FileError) {
      guard try fileSystem.status(of: path) == nil else {
        throw FileError(.create, path, .fileExists)
      }
      try fileSystem.make(path, with: bytes)
    } catch {
      guard error.errno == .fileExists else { throw .writeFailed(error) }
      throw VaultError(
        .alreadyExists, "file \(path) already exists",
        hint: "choose a new path; export never replaces a file", underlying: error)
    }
  }
}
