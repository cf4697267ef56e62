internal import CSQLite
package import FileLayer
package import SystemPackage
package import VaultCrypto

/// A database to be made: under a side name until it is whole and durable, then under its own.
package final class CopyTarget {
  let path: FilePath
  /// Where it is written: `.NAME.new` in the same directory.
  let side: FilePath
  /// How its pages are encrypted; nil for a plain one.
  let format: FileFormat?
  let vfs: String
  private(set) var registration: KeyRegistration?
  private let fileSystem: any FileSystem
  private let lock: FileLock
  private var isFinished = false

  private init(
    _ path: FilePath, _ format: FileFormat?, vfs: String, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
    try SealedVFS.install()
    // Before symbolic links are followed: one that leads nowhere is in the way too.
    let isTaken = try Self.reporting(path) { () throws(FileError) in
      try fileSystem.status(of: path) != nil
    }
    if isTaken { throw SealedFileError(.alreadyExists, path: path.string) }
    let full = FilePath(try SealedVFS.fullPath(path))
    let side = full.temporarySibling
    lock = try Self.lock(side, for: full, fileSystem)
    self.path = full
    self.side = side
    self.format = format
    self.vfs = vfs
    self.fileSystem = fileSystem
    try requireFreePlace()
  }

  /// A sealed database, with an identity of its own.
  package static func sealed(
    _ path: FilePath, key: borrowing SecretBytes, over base: String = "unix",
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) -> CopyTarget {
    let target = try CopyTarget(path, .sealed, vfs: SealedVFS.name, fileSystem)
    target.registration = try SealedVFS.register(
      key: key, at: target.side, over: base, setsReserve: true)
    return target
  }

  /// An SQLCipher 4 database with default settings.
  package static func sqlcipher4(
    _ path: FilePath, key: borrowing SQLCipherKey, over base: String = "unix",
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) -> CopyTarget {
    let target = try CopyTarget(path, .sqlcipher4, vfs: SealedVFS.name, fileSystem)
    target.registration = try SealedVFS.register(sqlcipher4: key, at: target.side, over: base)
    return target
  }

  /// A plain SQLite database: everything in it is in clear.
  package static func plain(
    _ path: FilePath, over base: String = "unix",
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedFileError) -> CopyTarget {
    try CopyTarget(path, nil, vfs: base, fileSystem)
  }

  deinit {
    if !isFinished { try? fileSystem.remove(side) }
    lock.release()
  }

  /// Gives the database its name, durably; its connection is closed.
  func finish() throws(SealedFileError) {
    try requireFreePlace()
    try reporting { () throws(FileError) in try fileSystem.rename(side, to: path) }
    isFinished = true
    try reporting { () throws(FileError) in
      try fileSystem.synchronizeDirectory(path.containingDirectory)
    }
  }

  /// How many pages are written so far.
  var pageCount: Int {
    let status = try? LinuxFileSystem().status(of: side)
    return Int(status?.byteCount ?? 0) / PageLayout.byteCount
  }

  /// Nothing may lie there, nor a log or journal that SQLite would take for the new database's.
  private func requireFreePlace() throws(SealedFileError) {
    for suffix in ["", "-wal", "-journal"] {
      let place = FilePath(path.string + suffix)
      let status = try reporting { () throws(FileError) in try fileSystem.status(of: place) }
      if status != nil { throw SealedFileError(.alreadyExists, path: place.string) }
    }
  }

  private func reporting<R>(_ body: () throws(FileError) -> R) throws(SealedFileError) -> R {
    try Self.reporting(path, body)
  }

  private static func reporting<R>(
    _ path: FilePath, _ body: () throws(FileError) -> R
  ) throws(SealedFileError) -> R {
    do throws(FileError) {
      return try body()
    } catch {
      throw SealedFileError(error, path)
    }
  }

  /// Makes the side file, empty and locked (flock(2)), so that two copies to one name do not meet.
  ///
  /// What a killed copy left there is removed under its lock.
  private static func lock(
    _ side: FilePath, for path: FilePath, _ fileSystem: any FileSystem
  ) throws(SealedFileError) -> FileLock {
    try reporting(path) { () throws(FileError) in
      for suffix in ["-wal", "-journal", "-shm"] {
        try fileSystem.remove(FilePath(side.string + suffix))
      }
    }
    while true {
      let lock = try reporting(path) { () throws(FileError) in
        try fileSystem.makeLockFile(side)
        return try fileSystem.lock(side, wait: false)
      }
      guard let lock else {
        throw SealedFileError(.busy, path: path.string, detail: "another copy is being made there")
      }
      let status = try reporting(path) { () throws(FileError) in
        try fileSystem.status(of: side)
      }
      if status?.byteCount == 0 { return lock }
      try reporting(path) { () throws(FileError) in try fileSystem.remove(side) }
      lock.release()
    }
  }
}
