package import FileLayer
public import GRDB
public import SealedVFS
public import SystemPackage
public import VaultCrypto

extension SealedDatabase {
  /// Copies a whole database into a new file, from any format to any: `docs/reference/exchange.md`.
  ///
  /// Rows with their row ids, schema, indexes, triggers, views, virtual tables, text encoding,
  /// `auto_vacuum`, `user_version` and `application_id` arrive; free space and the page size do not,
  /// and a sealed copy has an identity of its own. The source is opened read-only and stays as it
  /// is. A sealed one may be in use; others must be closed, and are held until the copy is done.
  ///
  /// The new file is whole and durable on return. Killed before, it is absent, and `.NAME.new` beside
  /// it may be a part of it, in the new format; the next copy to the name removes it.
  ///
  /// - Parameters:
  ///   - source: what to copy; nothing is left beside it.
  ///   - target: where to; nothing may lie there.
  ///   - progress: pages written, of those that the source has; called on the same thread.
  /// - Throws: `alreadyExists`, `absent`, `wrongKey`, `wrongKeyOrNotSQLCipher`, `notClosed`, `busy`,
  ///   `damaged`, `truncated`, `diskFull`, and the errors of ``openReader(at:key:configuration:)``.
  ///   `sqlite` for a schema that needs functions or collations that SQLite itself does not have.
  public static func copy(
    from source: borrowing DatabaseFile, to target: borrowing DatabaseFile,
    progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    try copy(
      from: source, to: target, over: "unix", fileSystem: LinuxFileSystem(), progress: progress)
  }

  /// As above, on another VFS and file system: for tests that record or fail what reaches the disk.
  package static func copy(
    from source: borrowing DatabaseFile, to target: borrowing DatabaseFile, over base: String,
    fileSystem: any FileSystem, progress: (PageProgress) -> Void = { _ in }
  ) throws(SealedDatabaseError) {
    do throws(SealedFileError) {
      let made = try makeTarget(target, over: base, fileSystem)
      try DatabaseCopy(from: openSource(source, over: base), to: made).run(progress: progress)
    } catch {
      throw SealedDatabaseError(error)
    }
  }

  private static func makeTarget(
    _ file: borrowing DatabaseFile, over base: String, _ fileSystem: any FileSystem
  ) throws(SealedFileError) -> CopyTarget {
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
  ) throws(SealedFileError) -> CopySource {
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

/// A database file, by where it lies, how it is encrypted and what opens it.
public struct DatabaseFile: ~Copyable, Sendable {
  /// How the pages are encrypted, and what opens them.
  enum Encryption: ~Copyable {
    case sealed(SecretBytes)
    case sqlcipher4(SQLCipherKey)
    case none
  }

  /// Where it lies.
  public let path: FilePath
  let encryption: Encryption

  private init(_ path: FilePath, _ encryption: consuming Encryption) {
    self.path = path
    self.encryption = encryption
  }

  /// Our own format, `docs/reference/sealed-database-format.md`, under a key of 32 bytes.
  public static func sealed(_ path: FilePath, key: consuming SecretBytes) -> DatabaseFile {
    DatabaseFile(path, .sealed(key))
  }

  /// SQLCipher 4 with its default settings: `docs/reference/sqlcipher-format.md`.
  public static func sqlcipher4(_ path: FilePath, key: consuming SQLCipherKey) -> DatabaseFile {
    DatabaseFile(path, .sqlcipher4(key))
  }

  /// A plain SQLite database.
  public static func plain(_ path: FilePath) -> DatabaseFile {
    DatabaseFile(path, .none)
  }
}
