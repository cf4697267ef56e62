internal import FileLayer
internal import SystemPackage

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
