package import FileLayer
internal import Glibc
package import SystemPackage

/// Writes a database file as `.NAME.new`, and renames it to `NAME` once it is whole and durable.
///
/// If the process is killed, `NAME` is either the old file or the whole new one. The next process
/// that makes a file for `NAME` removes the `.NAME.new` that a killed process left.
package struct AtomicFileReplacement: Sendable {
  /// The file's final path.
  package let place: FilePath

  /// The path of the file while it is written, in the same directory.
  package var path: FilePath { place.temporarySibling }

  private let fileSystem: any FileSystem
  private let replaces: Bool

  /// Prepares to replace an existing file that the caller has locked.
  ///
  /// - Parameter place: the full path as ``SealedVFS`` writes it, symbolic links resolved.
  init(replacing place: FilePath, _ fileSystem: any FileSystem) {
    self.place = place
    self.fileSystem = fileSystem
    replaces = true
  }

  /// Prepares to make a new file.
  ///
  /// - Throws: `alreadyExists` if the path exists, or a log or journal beside it.
  package init(newAt place: FilePath, _ fileSystem: any FileSystem) throws(SealedDatabaseError) {
    // Checked before symbolic links are followed: a dangling link occupies the path, too.
    if try translatingFileErrors(fileSystem.status(of: place)) != nil {
      throw SealedDatabaseError(.alreadyExists, path: place.string)
    }
    self.place = FilePath(try SealedVFS.fullPath(place))
    self.fileSystem = fileSystem
    replaces = false
    if ["-wal", "-shm", "-journal"].contains(where: self.place.string.hasSuffix) {
      throw SealedDatabaseError(
        .invalidArgument, path: place.string,
        detail: "SQLite takes a file of this name for a part of another database")
    }
    try requireFreePlace()
  }

  /// Requires that the path is free, and that no log or journal exists that SQLite would use with
  /// it.
  package func requireFreePlace() throws(SealedDatabaseError) {
    for suffix in ["", "-wal", "-journal"] {
      let name = FilePath(place.string + suffix)
      if try translatingFileErrors(fileSystem.status(of: name)) != nil {
        throw SealedDatabaseError(.alreadyExists, path: name.string)
      }
    }
  }

  /// Creates an empty file, replacing one that a killed process left.
  func create(permissions: FilePermissions) throws(SealedDatabaseError) -> any WritableFile {
    try translatingFileErrors(remove())
    return try translatingFileErrors(fileSystem.create(path, permissions: permissions))
  }

  /// Creates an empty file, and locks it with flock(2) against other processes that make the same
  /// file.
  ///
  /// - Parameter model: a file whose permissions and owner the new one gets, if this process is
  ///   root or the model's owner. Otherwise the new file has mode 0600; root gives it to the owner
  ///   of the directory.
  /// - Throws: `busy`; `foreignFile` if another user has made a file of that name.
  package func claim(like model: FilePath? = nil) throws(SealedDatabaseError) -> FileLock {
    let status: FileStatus? =
      if let model { try modelStatus(FilePath(SealedVFS.fullPath(model))) } else { nil }
    while true {
      let isOurs = try translatingFileErrors(make(like: status))
      let lock: FileLock?
      do throws(FileError) {
        lock = try fileSystem.lock(path, wait: false, owner: status?.owner)
      } catch {
        if isOurs { discard() }
        throw SealedDatabaseError(error)
      }
      guard let lock else {
        throw SealedDatabaseError(
          .busy, path: place.string, detail: "another process is creating this file")
      }
      if isOurs { return lock }
      // A killed process left the file. We hold its lock, so we can remove it.
      try translatingFileErrors(remove())
      lock.release()
    }
  }

  /// Renames the file to its final path and makes the rename durable.
  ///
  /// If a step before the rename fails, the written file is removed.
  ///
  /// - Parameter siblings: suffixes of files to remove first, because they belong to the old file.
  /// - Throws: `alreadyExists` if another file took a new file's path in the meantime.
  package func putInPlace(removing siblings: [String] = []) throws(SealedDatabaseError) {
    do throws(FileError) {
      for suffix in siblings { try fileSystem.remove(FilePath(place.string + suffix)) }
      if replaces {
        try fileSystem.rename(path, to: place)
      } else {
        try fileSystem.rename(path, toFree: place)
      }
    } catch {
      discard()
      if error.errno == .fileExists, !replaces {
        throw SealedDatabaseError(.alreadyExists, path: place.string)
      }
      throw SealedDatabaseError(error)
    }
    do throws(FileError) {
      try fileSystem.synchronizeDirectory(place.containingDirectory)
    } catch {
      throw SealedDatabaseError(
        .inputOutput, path: place.string,
        detail: "the file is complete, but the disk did not confirm its name: \(error)")
    }
  }

  /// Removes the written file without using it.
  package func discard() {
    try? remove()  // the next replacement removes the file
  }

  private func remove() throws(FileError) {
    for suffix in ["-journal", "-wal", "-shm", ""] {
      try fileSystem.remove(FilePath(path.string + suffix))
    }
  }

  /// Creates the file; returns false if it exists.
  private func make(like model: FileStatus?) throws(FileError) -> Bool {
    // A user who cannot give files away becomes the owner, and no other user gets access.
    let model = model.flatMap { [0, $0.owner.userID].contains(geteuid()) ? $0 : nil }
    let owner =
      if let model { model.owner } else {
        try fileSystem.ownerOfNewFile(in: place.containingDirectory)
      }
    let file: any WritableFile
    do throws(FileError) {
      file = try fileSystem.create(path, permissions: model?.permissions ?? .ownerReadWrite)
    } catch {
      if error.errno == .fileExists { return false }
      throw error
    }
    defer { file.close() }
    do throws(FileError) {
      if let owner { try file.changeOwner(to: owner) }
    } catch {
      discard()
      throw error
    }
    return true
  }

  private func modelStatus(_ model: FilePath) throws(SealedDatabaseError) -> FileStatus {
    guard let status = try translatingFileErrors(fileSystem.status(of: model)) else {
      throw SealedDatabaseError(FileError(.status, model, .noSuchFileOrDirectory))
    }
    return status
  }
}
