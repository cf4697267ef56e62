package import FileLayer
internal import Glibc
package import SystemPackage

/// A database file in the making: written as `.NAME.new` until it is whole and durable, then renamed.
///
/// Killed at any moment, there is at its place what was there before, or the whole new file. What a
/// killed process left at the side name is removed by the next one that makes a file for this place.
package struct AtomicFileReplacement: Sendable {
  /// Where the file will be.
  package let place: FilePath

  /// Where it is written: a name beside its place, in the same directory.
  package var path: FilePath { place.temporarySibling }

  private let fileSystem: any FileSystem
  private let replaces: Bool

  /// A file that is to take the place of one that is there, and that the caller has locked.
  ///
  /// - Parameter place: as ``SealedVFS`` writes it, symbolic links resolved.
  init(replacing place: FilePath, _ fileSystem: any FileSystem) {
    self.init(place, fileSystem, replaces: true)
  }

  private init(_ place: FilePath, _ fileSystem: any FileSystem, replaces: Bool) {
    self.place = place
    self.fileSystem = fileSystem
    self.replaces = replaces
  }

  /// A new file.
  ///
  /// - Throws: `alreadyExists`.
  package init(newAt place: FilePath, _ fileSystem: any FileSystem) throws(SealedFileError) {
    // Before symbolic links are followed: one that leads nowhere is in the way too.
    let isTaken = try SealedFileError.translating(place) { () throws(FileError) in
      try fileSystem.status(of: place) != nil
    }
    if isTaken { throw SealedFileError(.alreadyExists, path: place.string) }
    self.init(FilePath(try SealedVFS.fullPath(place)), fileSystem, replaces: false)
    try requireFreePlace()
  }

  /// Nothing may lie there, nor a log or journal that SQLite would take for the new database's.
  package func requireFreePlace() throws(SealedFileError) {
    for suffix in ["", "-wal", "-journal"] {
      let name = FilePath(place.string + suffix)
      if try translating({ () throws(FileError) in try fileSystem.status(of: name) }) != nil {
        throw SealedFileError(.alreadyExists, path: name.string)
      }
    }
  }

  /// Makes the file anew, empty.
  func create(permissions: FilePermissions) throws(SealedFileError) -> any WritableFile {
    try translating { () throws(FileError) in
      try remove()
      return try fileSystem.create(path, permissions: permissions)
    }
  }

  /// Makes the file anew, empty, and locks it (flock(2)), so that two that are made for one place do
  /// not meet.
  ///
  /// - Parameter model: a file whose permissions and owner the new one gets, made by its owner or by root;
  ///   nil, or anybody else, makes it 0600, root's for the owner of the directory.
  /// - Throws: `busy`; `foreignFile` when another user has made a file of that name.
  package func claim(like model: FilePath? = nil) throws(SealedFileError) -> FileLock {
    let status: FileStatus? =
      if let model { try modelStatus(FilePath(SealedVFS.fullPath(model))) } else { nil }
    while true {
      let isOurs = try translating { () throws(FileError) in try make(like: status) }
      let lock: FileLock?
      do throws(SealedFileError) {
        lock = try translating { () throws(FileError) in
          try fileSystem.lock(path, wait: false, owner: status?.owner)
        }
      } catch {
        if isOurs { discard() }
        throw error
      }
      guard let lock else {
        throw SealedFileError(
          .busy, path: place.string, detail: "another process is making a file there")
      }
      if isOurs { return lock }
      // A killed process left it: under its lock it can be removed.
      try translating { () throws(FileError) in try remove() }
      lock.release()
    }
  }

  /// Gives the file its name, durably.
  ///
  /// Where that fails before the rename, the side file is removed.
  ///
  /// - Parameter siblings: what is removed first, because it belongs to the file that was there.
  /// - Throws: `alreadyExists` when a new file's place was taken meanwhile.
  package func putInPlace(removing siblings: [String] = []) throws(SealedFileError) {
    do throws(SealedFileError) {
      try translating { () throws(FileError) in
        for suffix in siblings { try fileSystem.remove(FilePath(place.string + suffix)) }
      }
      try rename()
    } catch {
      discard()
      throw error
    }
    try translating { () throws(FileError) in
      try fileSystem.synchronizeDirectory(place.containingDirectory)
    }
  }

  /// Removes a file that is not to be used.
  package func discard() {
    try? remove()
  }

  private func rename() throws(SealedFileError) {
    do throws(FileError) {
      if replaces {
        try fileSystem.rename(path, to: place)
      } else {
        try fileSystem.rename(path, toFree: place)
      }
    } catch {
      if error.errno == .fileExists, !replaces {
        throw SealedFileError(.alreadyExists, path: place.string)
      }
      throw SealedFileError(error, place)
    }
  }

  private func remove() throws(FileError) {
    for suffix in ["-journal", "-wal", "-shm", ""] {
      try fileSystem.remove(FilePath(path.string + suffix))
    }
  }

  /// Makes the file; false where there is one.
  private func make(like model: FileStatus?) throws(FileError) -> Bool {
    // Who may not give files away makes it theirs, and shows it to nobody else.
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

  private func modelStatus(_ model: FilePath) throws(SealedFileError) -> FileStatus {
    try SealedFileError.translating(model) { () throws(FileError) in
      guard let status = try fileSystem.status(of: model) else {
        throw FileError(.status, model, .noSuchFileOrDirectory)
      }
      return status
    }
  }

  private func translating<R>(_ body: () throws(FileError) -> R) throws(SealedFileError) -> R {
    try SealedFileError.translating(place, body)
  }
}
