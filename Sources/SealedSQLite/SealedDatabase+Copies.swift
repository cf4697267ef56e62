package import FileLayer
public import GRDB
public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Copies a whole database into a new file, from any format to any format.
  ///
  /// `docs/reference/exchange.md` has the details. The copy has all rows with their row ids, the schema with
  /// indexes, triggers, views and virtual tables, the text encoding, `auto_vacuum`, `user_version`
  /// and `application_id`. Free space and the page size are not copied. A sealed copy has a new
  /// identity. The source is opened read-only and does not change. A sealed source can be in use.
  /// Any other must be closed, and is locked until the copy is done.
  ///
  /// The new file is whole and durable on return. If the process is killed before, the file does
  /// not exist. `.NAME.new` beside it can then hold part of the copy, in the new format. The next
  /// copy to the same name removes it.
  ///
  /// - Parameters:
  ///   - source: the database to copy; no file is left beside it.
  ///   - target: the new database, whose path must be free.
  ///   - progress: receives the pages written and the pages of the source, on the same thread.
  /// - Throws: `alreadyExists`, `notFound`, `wrongKey`, `wrongKeyOrNotSQLCipher`, `notClosed`,
  ///   `busy`, `damaged`, `truncated`, `diskFull`, and the errors of
  ///   ``openReader(at:key:configuration:)``; `sqlite` for a schema that needs functions or
  ///   collations that SQLite itself lacks.
  public static func copy(
    from source: borrowing DatabaseFile, to target: borrowing DatabaseFile,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    try copy(
      from: source, to: target, over: "unix", fileSystem: LinuxFileSystem(), progress: progress)
  }

  /// Copies over another VFS and file system, for tests that record disk writes or make them fail.
  package static func copy(
    from source: borrowing DatabaseFile, to target: borrowing DatabaseFile, over base: String,
    fileSystem: any FileSystem, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    let made = try makeTarget(target, over: base, fileSystem)
    try DatabaseCopy(from: openSource(source, over: base), to: made).run(progress: progress)
  }

  private static func makeTarget(
    _ file: borrowing DatabaseFile, over base: String, _ fileSystem: any FileSystem
  ) throws(SealedDatabaseError) -> CopyTarget {
    switch file.encryption {
    case .sealed(let key):
      try .sealed(file.path, key: key, over: base, fileSystem: fileSystem)
    case .sqlcipher4(let key):
      try .sqlcipher4(file.path, key: key, over: base, fileSystem: fileSystem)
    case .none:
      try .plain(file.path, over: base, fileSystem: fileSystem)
    }
  }

  private static func openSource(
    _ file: borrowing DatabaseFile, over base: String
  ) throws(SealedDatabaseError) -> CopySource {
    switch file.encryption {
    case .sealed(let key): try .sealed(file.path, key: key, over: base)
    case .sqlcipher4(let key): try .sqlcipher4(file.path, key: key, over: base)
    case .none: try .plain(file.path, over: base)
    }
  }
}

extension SealedDatabase {
  /// Copies the database of an open pool or queue into a new sealed file: SQLite's `VACUUM INTO`.
  ///
  /// The copy has no free space, and a new identity. The pool stays in use: its writer waits, its
  /// readers do not. Unlike ``copy(from:to:progress:)`` this has the functions and collations of
  /// the connection, and needs no key of the source.
  ///
  /// The new file is whole and durable on return, with any ``Durability`` of the pool. If the
  /// process is killed before, the file does not exist. `.NAME.new` beside it can then hold part of
  /// the copy, sealed. The next copy to the same name removes it.
  ///
  /// - Parameters:
  ///   - writer: a pool or queue of ``SealedDatabase``.
  ///   - path: the new file; the path must be free, and so must those of its log and journal.
  ///   - key: 32 bytes, which are copied; the source's key or another.
  /// - Throws: `alreadyExists`; `busy` while another process creates the same file;
  ///   `notOnSealedVFS`; `damagedPage`, `truncated`, `diskFull`, and errors of SQLite.
  public static func vacuum(
    _ writer: any DatabaseWriter, into path: FilePath, key: borrowing SecretBytes
  ) throws(SealedDatabaseError) {
    try vacuum(writer, into: path, key: key, over: "unix", fileSystem: LinuxFileSystem())
  }

  /// Copies over another VFS and file system, for tests that record disk writes or make them fail.
  package static func vacuum(
    _ writer: any DatabaseWriter, into path: FilePath, key: borrowing SecretBytes,
    over base: String, fileSystem: any FileSystem
  ) throws(SealedDatabaseError) {
    guard OpenDatabases.registration(of: writer) != nil else {
      throw SealedDatabaseError(
        .notOnSealedVFS, path: writer.configuration.label ?? "the database")
    }
    let target = try CopyTarget.sealed(path, key: key, over: base, fileSystem: fileSystem)
    do {
      try writer.writeWithoutTransaction { db in
        // SQLite synchronizes the copy as it does the source.
        let level = try Int.fetchOne(db, sql: "PRAGMA main.synchronous") ?? 2
        try db.execute(sql: "PRAGMA main.synchronous = FULL")
        defer { try? db.execute(sql: "PRAGMA main.synchronous = \(level)") }
        try db.execute(sql: "VACUUM INTO ?", arguments: [target.side.string])
      }
    } catch let error as DatabaseError {
      let fault = target.registration?.fault(reportedAs: error.reportedCode)
      throw fault ?? SealedDatabaseError(explaining: error, in: writer)
    } catch {
      throw SealedDatabaseError(
        .sqlite, path: path.string, detail: "the copy failed", underlying: error)
    }
    try target.finish()
  }
}

/// A database file: its path, its encryption and the key that opens it.
public struct DatabaseFile: ~Copyable, Sendable {
  /// The encryption of the pages, with the key.
  enum Encryption: ~Copyable {
    case sealed(SecretBytes)
    case sqlcipher4(SQLCipherKey)
    case none
  }

  /// The path of the file.
  public let path: FilePath
  let encryption: Encryption

  private init(_ path: FilePath, _ encryption: consuming Encryption) {
    self.path = path
    self.encryption = encryption
  }

  /// A database in the sealed format, `docs/reference/sealed-database-format.md`, under a key of 32 bytes.
  public static func sealed(_ path: FilePath, key: consuming SecretBytes) -> DatabaseFile {
    DatabaseFile(path, .sealed(key))
  }

  /// A database of SQLCipher 4 with default settings: `docs/reference/sqlcipher-format.md`.
  public static func sqlcipher4(_ path: FilePath, key: consuming SQLCipherKey) -> DatabaseFile {
    DatabaseFile(path, .sqlcipher4(key))
  }

  /// A plain SQLite database.
  public static func plain(_ path: FilePath) -> DatabaseFile {
    DatabaseFile(path, .none)
  }
}
