internal import CSQLite
package import FileLayer
package import SystemPackage
package import VaultCrypto

extension ExclusiveConnection {
  /// Seals the whole database under a new key: `docs/sealed-database-format.md`, "Change of key".
  ///
  /// The file id stays. The new file is durable on return; killed at any moment, the database is
  /// whole under the old key or under the new one, and the header's key check tells which. This
  /// connection then holds the old file: let it go.
  ///
  /// - Parameter fileSystem: makes the new file, renames and synchronizes it.
  /// - Throws: `damagedPage` when a page does not open, `sameKey`, `readOnly`, `diskFull`,
  ///   `ioFailed`: the old file stands then, unless it was its directory that could not be
  ///   synchronized.
  package func reencrypt(
    to newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedFileError) {
    try writeCopy(under: newKey, fileSystem: fileSystem, progress: progress)
    try putCopyInPlace(fileSystem: fileSystem)
  }

  /// The first half of ``reencrypt(to:fileSystem:progress:)``: empties the log, and writes the whole database under the new key
  /// to the side name, durably.
  ///
  /// All that can go wrong with the pages or for want of space goes wrong here, where the database
  /// is as it was and the side file is removed again.
  package func writeCopy(
    under newKey: borrowing SecretBytes, fileSystem: any FileSystem = LinuxFileSystem(),
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedFileError) {
    guard let header = try? SealedHeader(fileID: file.keys.header.fileID, key: newKey) else {
      throw SealedFileError(.invalidArgument, path: path.string, detail: "a key has 32 bytes")
    }
    // Not the keys are compared but what tells them apart afterwards.
    guard header != file.keys.header else {
      throw SealedFileError(.sameKey, path: path.string)
    }
    let status = try reporting { () throws(FileError) in
      try fileSystem.remove(side)
      return try fileSystem.status(of: path)
    }
    guard let status else { throw SealedFileError(.absent, path: path.string) }
    let copy = try reporting { () throws(FileError) in
      try fileSystem.create(side, permissions: status.permissions)
    }
    do throws(SealedFileError) {
      defer { copy.close() }
      try checkpoint()
      try write(PageCopy(file, header: header, key: newKey), to: copy, progress)
      try reporting { () throws(FileError) in
        try copy.changeOwner(to: status.owner)
        try copy.synchronize()
      }
    } catch {
      discardCopy(fileSystem: fileSystem)
      throw error
    }
  }

  /// The second half: puts the copy in the database's place, durably.
  ///
  /// The log is empty, a journal done with, and nobody shares an index: where they are there they go
  /// first, because they do not belong to the new file. Should a power cut bring them back, they
  /// hold nothing that opens there.
  package func putCopyInPlace(
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) {
    do throws(SealedFileError) {
      try reporting { () throws(FileError) in
        for suffix in ["-wal", "-shm", "-journal"] {
          try fileSystem.remove(FilePath(path.string + suffix))
        }
        try fileSystem.rename(side, to: path)
      }
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
    _ pages: consuming PageCopy, to file: any WritableFile, _ progress: (PageProgress) -> Void
  ) throws(SealedFileError) {
    while let piece = try pages.next() {
      try reporting { () throws(FileError) in try file.write(piece) }
      progress(
        PageProgress(
          completedPageCount: Int(pages.completedPageCount), pageCount: Int(pages.pageCount)))
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
  package init(_ error: FileError, _ path: FilePath) {
    let code: Code =
      switch error.errno {
      case .noSpace, .diskQuotaExceeded: .diskFull
      case .permissionDenied, .notPermitted, .readOnlyFileSystem: .readOnly
      default: .ioFailed
      }
    self.init(code, path: path.string, detail: error.description)
  }
}
