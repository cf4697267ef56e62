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
    try writeCopy(under: newKey, fileSystem: fileSystem)
    try putCopyInPlace(fileSystem: fileSystem)
  }

  /// The first half of ``reencrypt(to:fileSystem:)``: writes the whole database under the new key
  /// to the side name, durably.
  ///
  /// All that can go wrong with the pages or for want of space goes wrong here, where the database
  /// is as it was and the side file is removed again.
  package func writeCopy(
    under newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    guard let header = try? SealedHeader(fileID: file.keys.header.fileID, key: newKey) else {
      throw SealedFileError(.invalidArgument, path: path.string, detail: "a key has 32 bytes")
    }
    try write(PageCopy(file, header: header, key: newKey), fileSystem)
  }

  /// The second half: puts the copy in the database's place, durably.
  package func putCopyInPlace(
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    do throws(SealedFileError) {
      try reporting { () throws(FileError) in try fileSystem.rename(side, to: path) }
    } catch {
      discardCopy(fileSystem: fileSystem)
      throw error
    }
    try reporting { () throws(FileError) in
      try fileSystem.synchronizeDirectory(path.removingLastComponent())
    }
  }

  /// Removes a copy that is not to be used.
  package func discardCopy(fileSystem: any FileSystem = LinuxFileSystem()) {
    try? fileSystem.remove(side)
  }

  private var side: FilePath { FilePath(path.string + "-rekey") }

  private func write(
    _ copy: consuming PageCopy, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
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
      }
    } catch {
      discardCopy(fileSystem: fileSystem)
      throw error
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
