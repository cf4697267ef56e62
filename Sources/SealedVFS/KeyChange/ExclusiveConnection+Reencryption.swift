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

  /// The first half of ``reencrypt(to:fileSystem:progress:)``: empties the log, and writes the whole
  /// database under the new key to the side name, durably.
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
    let status = try SealedFileError.translating(path) { () throws(FileError) in
      try fileSystem.status(of: path)
    }
    guard let status else { throw SealedFileError(.absent, path: path.string) }
    let side = SideFile(replacing: path, fileSystem)
    let copy = try side.create(permissions: status.permissions)
    do throws(SealedFileError) {
      defer { copy.close() }
      try checkpoint()
      try write(PageCopy(file, header: header, key: newKey), to: copy, progress)
      try SealedFileError.translating(path) { () throws(FileError) in
        try copy.changeOwner(to: status.owner)
        try copy.synchronize()
      }
    } catch {
      side.discard()
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
    try SideFile(replacing: path, fileSystem)
      .putInPlace(removing: ["-wal", "-shm", "-journal"])
  }

  /// Removes a copy that is not to be used.
  package func discardCopy(fileSystem: any FileSystem = LinuxFileSystem()) {
    SideFile(replacing: path, fileSystem).discard()
  }

  private func write(
    _ pages: consuming PageCopy, to file: any WritableFile, _ progress: (PageProgress) -> Void
  ) throws(SealedFileError) {
    while let piece = try pages.next() {
      try SealedFileError.translating(path) { () throws(FileError) in try file.write(piece) }
      progress(
        PageProgress(
          completedPageCount: Int(pages.completedPageCount), pageCount: Int(pages.pageCount)))
    }
  }
}
