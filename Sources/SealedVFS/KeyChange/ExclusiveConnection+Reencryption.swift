internal import CSQLite
package import FileLayer
internal import SystemPackage
package import VaultCrypto

extension ExclusiveConnection {
  /// Seals the whole database under a new key: `docs/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. The new file is durable on return; killed at any moment, the database is
  /// whole under the old key or under the new one, and the header's key check tells which. This
  /// connection then holds the old file: let it go.
  ///
  /// - Parameter fileSystem: makes the new file, renames and synchronizes it.
  /// - Throws: `damagedPage` when a page does not open, `diskFull`, `ioFailed`: the old file stands
  ///   then, unless it was its directory that could not be synchronized.
  package func reencrypt(
    to newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    guard let header = try? SealedHeader(fileID: file.keys.header.fileID, key: newKey) else {
      throw SealedFileError(.invalidArgument, path: path.string, detail: "a key has 32 bytes")
    }
    try replaceFile(with: PageCopy(file, header: header, key: newKey), fileSystem)
  }

  /// Writes the copy under a side name, makes it durable and puts it in the database's place.
  private func replaceFile(
    with copy: consuming PageCopy, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
    let side = FilePath(path.string + "-rekey")
    let status = try reporting { () throws(FileError) in
      try fileSystem.remove(side)
      return try fileSystem.status(of: path)
    }
    guard let status else { throw SealedFileError(.absent, path: path.string) }
    let file = try reporting { () throws(FileError) in
      try fileSystem.create(side, permissions: status.permissions)
    }
    do throws(SealedFileError) {
      defer { file.close() }
      while let pages = try copy.next() {
        try reporting { () throws(FileError) in try file.write(pages) }
      }
      try reporting { () throws(FileError) in
        try file.changeOwner(to: status.owner)
        try file.synchronize()
        try fileSystem.rename(side, to: path)
      }
    } catch {
      try? fileSystem.remove(side)
      throw error
    }
    try reporting { () throws(FileError) in
      try fileSystem.synchronizeDirectory(path.removingLastComponent())
    }
  }

  private func reporting<R>(_ body: () throws(FileError) -> R) throws(SealedFileError) -> R {
    do throws(FileError) {
      return try body()
    } catch {
      throw SealedFileError(error, path)
    }
  }
}

extension SealedFileError {
  /// What a file operation around a change of key failed with.
  init(_ error: FileError, _ path: FilePath) {
    self.init(
      error.errno == .noSpace ? .diskFull : .ioFailed, path: path.string,
      detail: error.description)
  }
}
