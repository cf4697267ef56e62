package import FileLayer
package import SystemPackage
package import VaultCrypto

/// A database to make: written under a temporary name until it is whole and durable, then renamed.
package final class CopyTarget {
  /// The encryption format of its pages; nil for a plain database.
  let format: FileFormat?
  let vfs: String
  package private(set) var registration: KeyRegistration?
  private let file: AtomicFileReplacement
  private let lock: FileLock
  private var isFinished = false

  var path: FilePath { file.place }
  /// The path of the file while it is written.
  package var side: FilePath { file.path }

  private init(
    _ path: FilePath, _ format: FileFormat?, vfs: String, _ fileSystem: any FileSystem
  ) throws(SealedDatabaseError) {
    try SealedVFS.install()
    file = try AtomicFileReplacement(newAt: path, fileSystem)
    lock = try file.claim()
    self.format = format
    self.vfs = vfs
  }

  /// Prepares a sealed database with a new identity.
  ///
  /// - Parameter newFileID: the identity, 8 bytes; nil draws one.
  package static func sealed(
    _ path: FilePath, key: borrowing SecretBytes, newFileID: [UInt8]? = nil,
    over base: String = "unix", fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedDatabaseError) -> CopyTarget {
    let target = try CopyTarget(path, .sealed, vfs: SealedVFS.name, fileSystem)
    target.registration = try SealedVFS.register(
      key: key, at: target.side, over: base, newFileID: newFileID, setsReserve: true)
    return target
  }

  /// Prepares an SQLCipher 4 database with default settings.
  package static func sqlcipher4(
    _ path: FilePath, key: borrowing SQLCipherKey, over base: String = "unix",
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedDatabaseError) -> CopyTarget {
    let target = try CopyTarget(path, .sqlcipher4, vfs: SealedVFS.name, fileSystem)
    target.registration = try SealedVFS.register(sqlcipher4: key, at: target.side, over: base)
    return target
  }

  /// Prepares a plain SQLite database, in which everything is in the clear.
  package static func plain(
    _ path: FilePath, over base: String = "unix",
    fileSystem: any FileSystem = LinuxFileSystem()
  ) throws(SealedDatabaseError) -> CopyTarget {
    try CopyTarget(path, nil, vfs: base, fileSystem)
  }

  deinit {
    if !isFinished { file.discard() }
    lock.release()
  }

  /// Renames the database to its final path, durably; its connection must be closed.
  package func finish() throws(SealedDatabaseError) {
    try file.requireFreePlace()
    isFinished = true  // before putInPlace, which removes the file itself if it fails
    try file.putInPlace()
  }

  /// The number of pages written so far.
  var pageCount: Int {
    let status = try? LinuxFileSystem().status(of: side)  // only for a report of progress
    return Int(status?.byteCount ?? 0) / PageLayout.byteCount
  }
}
