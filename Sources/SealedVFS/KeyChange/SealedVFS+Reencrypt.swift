internal import CSQLite
package import FileLayer
package import SystemPackage
package import VaultCrypto

extension SealedVFS {
  /// Seals a whole database under a new key: `docs/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. All connections must be closed, in every process. The new file is durable on
  /// return; killed at any moment, the database is whole under the old key or under the new one, and
  /// the header's key check tells which. A database that is already under the new key stays as it is.
  ///
  /// - Parameter base: the VFS beneath; `fileSystem` makes the new file, renames and synchronizes it.
  /// - Throws: `busy` when the database is open elsewhere; `damagedPage` when a page does not open:
  ///   the old file stands then.
  package static func reencrypt(
    _ path: FilePath, from oldKey: borrowing SecretBytes, to newKey: borrowing SecretBytes,
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    let full = FilePath(try fullPath(path))
    if case .sealed(let header) = try inspect(full, over: base), header.matches(key: newKey) {
      // An earlier change got this far; its rename may not be durable yet.
      return try reporting(full) { () throws(FileError) in
        try fileSystem.synchronizeDirectory(full.removingLastComponent())
      }
    }
    try inspect(full, over: base).require(key: oldKey, at: full, exists: true)
    let registration = try register(key: oldKey, at: full, over: base)
    let connection = try ExclusiveConnection(full.string, registration: registration)
    try withExtendedLifetime(connection) { () throws(SealedFileError) in
      let file = connection.file
      let header = try seal(file.keys.header.fileID, newKey, full)
      try replace(full, with: PageCopy(file, header: header, key: newKey), fileSystem)
    }
  }

  private static func seal(
    _ fileID: [UInt8], _ key: borrowing SecretBytes, _ path: FilePath
  ) throws(SealedFileError) -> SealedHeader {
    guard let header = try? SealedHeader(fileID: fileID, key: key) else {
      throw SealedFileError(.invalidArgument, path: path.string, detail: "a key has 32 bytes")
    }
    return header
  }

  /// Writes the copy under a side name, makes it durable and puts it in the database's place.
  private static func replace(
    _ path: FilePath, with copy: consuming PageCopy, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
    let side = FilePath(path.string + "-rekey")
    let status = try reporting(path) { () throws(FileError) in
      try fileSystem.remove(side)
      return try fileSystem.status(of: path)
    }
    guard let status else { throw SealedFileError(.absent, path: path.string) }
    let file = try reporting(path) { () throws(FileError) in
      try fileSystem.create(side, permissions: status.permissions)
    }
    do throws(SealedFileError) {
      defer { file.close() }
      while let pages = try copy.next() {
        try reporting(path) { () throws(FileError) in try file.write(pages) }
      }
      try reporting(path) { () throws(FileError) in
        try file.changeOwner(to: status.owner)
        try file.synchronize()
        try fileSystem.rename(side, to: path)
      }
    } catch {
      try? fileSystem.remove(side)
      throw error
    }
    try reporting(path) { () throws(FileError) in
      try fileSystem.synchronizeDirectory(path.removingLastComponent())
    }
  }

  private static func reporting<R>(
    _ path: FilePath, _ body: () throws(FileError) -> R
  ) throws(SealedFileError) -> R {
    do throws(FileError) {
      return try body()
    } catch {
      throw SealedFileError(
        error.errno == .noSpace ? .diskFull : .ioFailed, path: path.string,
        detail: error.description)
    }
  }
}
