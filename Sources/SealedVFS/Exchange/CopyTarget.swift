package import FileLayer
package import SystemPackage
package import VaultCrypto

/// A database to be made: under a side name until it is whole and durable, then under its own.
package final class CopyTarget {
  /// How its pages are encrypted; nil for a plain one.
  let format: FileFormat?
  let vfs: String
  package private(set) var registration: KeyRegistration?
  private let file: SideFile
  private let lock: FileLock
  private var isFinished = false

  var path: FilePath { file.place }
  /// Where it is written.
  package var side: FilePath { file.path }

  private init(
    _ path: FilePath, _ format: FileFormat?, vfs: String, _ fileSystem: any FileSystem
  ) throws(SealedFileError) {
    try SealedVFS.install()
    file = try SideFile(newAt: path, fileSystem)
    lock = try file.claim()
    self.format = format
    self.vfs = vfs
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
    if !isFinished { file.discard() }
    lock.release()
  }

  /// Gives the database its name, durably; its connection is closed.
  package func finish() throws(SealedFileError) {
    try file.requireFreePlace()
    isFinished = true  // or it is removed there
    try file.putInPlace()
  }

  /// How many pages are written so far.
  var pageCount: Int {
    let status = try? LinuxFileSystem().status(of: side)
    return Int(status?.byteCount ?? 0) / PageLayout.byteCount
  }
}
