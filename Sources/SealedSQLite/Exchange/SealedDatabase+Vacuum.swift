package import FileLayer
public import GRDB
internal import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Copies the database of an open pool or queue into a new sealed file: SQLite's `VACUUM INTO`.
  ///
  /// The copy is as small as it can be, and has an identity of its own. The pool stays in use: its
  /// writer waits, its readers do not. Unlike ``copy(from:to:progress:)`` this has the functions and
  /// collations of the connection, and needs no key of the source.
  ///
  /// The new file is whole and durable on return, whatever ``Durability`` the pool has. Killed before,
  /// it is absent, and `.NAME.new` beside it may be a part of it, sealed; the next copy to the name
  /// removes it.
  ///
  /// - Parameters:
  ///   - writer: a pool or queue of ``SealedDatabase``.
  ///   - path: the new file; nothing may lie there, nor a log or journal of that name.
  ///   - key: 32 bytes, copied; the source's, or another.
  /// - Throws: `alreadyExists`; `busy` while another process makes a file there; `notOnSealedVFS`;
  ///   `damagedPage`, `truncated`, `diskFull` and what SQLite says.
  public static func vacuum(
    _ writer: any DatabaseWriter, into path: FilePath, key: borrowing SecretBytes
  ) throws(SealedDatabaseError) {
    try vacuum(writer, into: path, key: key, over: "unix", fileSystem: LinuxFileSystem())
  }

  /// As above, on another VFS and file system: for tests that record or fail what reaches the disk.
  package static func vacuum(
    _ writer: any DatabaseWriter, into path: FilePath, key: borrowing SecretBytes,
    over base: String, fileSystem: any FileSystem
  ) throws(SealedDatabaseError) {
    guard OpenDatabases.registration(of: writer) != nil else {
      throw .notOnSealedVFS(writer.configuration.label ?? "the database")
    }
    let target: CopyTarget
    do throws(SealedFileError) {
      target = try CopyTarget.sealed(path, key: key, over: base, fileSystem: fileSystem)
    } catch {
      throw SealedDatabaseError(error)
    }
    do {
      try writer.writeWithoutTransaction { db in try fill(target.side, from: db) }
    } catch let error as DatabaseError {
      if let fault = target.registration?.fault(reportedAs: error.reportedCode) {
        throw SealedDatabaseError(fault)
      }
      throw SealedDatabaseError(explaining: error, in: writer)
    } catch {
      throw SealedDatabaseError(.sqlite, "\(path): the copy failed", underlying: error)
    }
    do throws(SealedFileError) {
      try target.finish()
    } catch {
      throw SealedDatabaseError(error)
    }
  }

  /// Runs the statement; what it writes is synchronized as the source would be, so at its fullest.
  private static func fill(_ path: FilePath, from db: Database) throws {
    let level = try Int.fetchOne(db, sql: "PRAGMA main.synchronous") ?? 2
    try db.execute(sql: "PRAGMA main.synchronous = FULL")
    defer { try? db.execute(sql: "PRAGMA main.synchronous = \(level)") }
    try db.execute(sql: "VACUUM INTO ?", arguments: [path.string])
  }
}
