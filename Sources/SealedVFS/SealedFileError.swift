internal import FileLayer
internal import SystemPackage

/// What is wrong with a sealed database's files, or with what was asked of them.
public struct SealedFileError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Sendable, Hashable {
    let name: String
    let message: String
    let hint: String?

    private init(_ name: String, _ message: String, hint: String? = nil) {
      self.name = name
      self.message = message
      self.hint = hint
    }

    /// The file is sealed under another key.
    public static let wrongKey = Code(
      "wrongKey", "the key does not open this database",
      hint: "it is another database's, or from before a change of key")
    /// The file is neither sealed nor an SQLite database.
    public static let notSealed = Code("notSealed", "this is not a sealed database")
    /// The file is an unencrypted SQLite database.
    public static let plainDatabase = Code(
      "plainDatabase", "this is a plain SQLite database, not a sealed one",
      hint: "import it, or name another file")
    /// The file has a later version of the format.
    public static let newerVersion = Code(
      "newerVersion", "this sealed database has another format version",
      hint: "use the version of this program that wrote it")
    /// A page of the database or its log does not authenticate.
    public static let damagedPage = Code(
      "damagedPage", "a page is damaged",
      hint: "keep the files as they are; restore a backup, or salvage what is whole")
    /// The rollback journal does not authenticate.
    public static let damagedJournal = Code(
      "damagedJournal", "the rollback journal is damaged, and the database needs it",
      hint: "restore the journal or the database from a backup")
    /// A log or journal beside the database was not written for it.
    public static let unrelatedCompanionFile = Code(
      "unrelatedCompanionFile", "the log or journal beside the database is not a sealed one",
      hint: "move it away if it belongs to something else")
    /// The file ends before its last page.
    public static let truncated = Code(
      "truncated", "the file is truncated",
      hint: "keep the files as they are; restore a backup, or salvage what is whole")
    /// The file was renamed or replaced while it was open.
    public static let moved = Code(
      "moved", "the database was replaced while it was open", hint: "open it again")
    /// A write that would lose bytes: the page's reserved 40 bytes are in use.
    public static let reserveInUse = Code(
      "reserveInUse", "the pages leave no room for nonce and tag",
      hint: "set SQLITE_FCNTL_RESERVE_BYTES to 40 and VACUUM")
    /// Page 1 does not open as one of SQLCipher 4, which has nothing that could tell the reasons apart.
    public static let wrongKeyOrNotSQLCipher = Code(
      "wrongKeyOrNotSQLCipher", "wrong key, or not an SQLCipher 4 database with default settings",
      hint: "look at passphrase or key first, then at the settings it was made with")
    /// What was called a plain database is none.
    public static let notPlainDatabase = Code(
      "notPlainDatabase", "this is not a plain SQLite database")
    /// What was called a database is empty, or no file at all but a directory, pipe or device.
    public static let notDatabaseFile = Code(
      "notDatabaseFile", "this is not a database file", hint: "look at the path")
    /// A log or journal beside the file holds changes that the file alone lacks.
    public static let notClosed = Code(
      "notClosed", "the database was not closed",
      hint: "open it with the program that wrote it, and close it there")
    /// Something lies where a new file was to be made.
    public static let alreadyExists = Code(
      "alreadyExists", "there is something already",
      hint: "name another file, or move that one away")
    /// SQLite finds the contents of a database contradictory.
    public static let malformed = Code(
      "malformed", "the database is malformed", hint: "restore a backup, or salvage what is whole")
    /// SQLite could not take over what a database holds.
    public static let sqliteFailed = Code("sqliteFailed", "SQLite refuses")
    /// Other connections are in the way.
    public static let busy = Code(
      "busy", "the database is in use", hint: "close it elsewhere first")
    /// The connection does not go through the sealed VFS: nothing was done.
    public static let notOnSealedVFS = Code(
      "notOnSealedVFS", "the connection is not on the sealed VFS",
      hint: "one process must hold one SQLite library")
    /// There is no such file.
    public static let absent = Code("absent", "there is no such database")
    /// A file in the making is not this user's alone: another user made it, or could have.
    public static let foreignFile = Code(
      "foreignFile", "a file of another user is in the way",
      hint: "check its owner and remove it, or use a directory of this user alone")
    /// The file or its directory may not be written.
    public static let readOnly = Code(
      "readOnly", "the database or its directory may not be written",
      hint: "look at their owner and permissions, and how the volume is mounted")
    /// A change of key to the key that the database has.
    public static let sameKey = Code(
      "sameKey", "the new key is the one that the database has", hint: "generate another key")
    /// The disk is full.
    public static let diskFull = Code(
      "diskFull", "the disk is full", hint: "free some space")
    /// The system failed to read or write.
    public static let ioFailed = Code("ioFailed", "reading or writing failed")
    /// A URI asks for the sealed VFS, and names no key or not just one.
    public static let keyNotNamed = Code(
      "keyNotNamed", "no key is named for this database",
      hint: "name a key file with keyfile=PATH, or an open descriptor with keyfd=NUMBER")
    /// A key was written into a URI or an SQL statement.
    public static let keyInText = Code(
      "keyInText", "a key does not belong into a URI or into SQL, where logs and history keep it",
      hint: "replace the key, keep its 32 bytes in a file of yours, and name that with keyfile=PATH"
    )
    /// A key file, or a descriptor that should give a key, cannot be used.
    public static let keyFileRefused = Code(
      "keyFileRefused", "the key cannot be taken from here",
      hint: "a key is 32 raw bytes, in a file that only its owner may read (chmod 600)")
    /// A `VACUUM INTO` would write a sealed database in the clear, or into a file that is not marked.
    public static let vacuumTargetRefused = Code(
      "vacuumTargetRefused", "VACUUM INTO does not write to this file",
      hint: "name sealed_vacuum_into=1 and a key in its URI, or vfs=unix for a plain copy; "
        + "a program calls SealedDatabase.vacuum(_:into:key:)")
    /// A key, an identity or a VFS name that cannot be used.
    public static let invalidArgument = Code("invalidArgument", "invalid argument")
  }

  /// What kind of failure.
  public let code: Code
  /// The database's path, or the key file's; empty where none is to blame.
  public let path: String
  /// The damaged page, from 1; nil for other failures.
  public let pageNumber: UInt32?
  /// What more is known, such as SQLite's or the system's words.
  public let detail: String?

  init(_ code: Code, path: String, pageNumber: UInt32? = nil, detail: String? = nil) {
    self.code = code
    self.path = path
    self.pageNumber = pageNumber
    self.detail = detail
  }

  /// What to do next, where that is known.
  public var hint: String? { code.hint }

  /// One line: what and where; never a key or a plaintext.
  public var description: String {
    let page = pageNumber.map { " (page \($0))" } ?? ""
    let place = path.isEmpty ? "" : "\(path): "
    return "\(place)\(code.message)\(page)\(detail.map { ": \($0)" } ?? "")"
  }
}

extension SealedFileError {
  /// What making or replacing a database's file failed with.
  init(_ error: FileError, _ path: FilePath) {
    let code: Code =
      switch error.errno {
      case _ where error.refusal != nil: .foreignFile
      case .noSpace, .diskQuotaExceeded: .diskFull
      case .permissionDenied, .notPermitted, .readOnlyFileSystem: .readOnly
      default: .ioFailed
      }
    self.init(code, path: path.string, detail: error.description)
  }

  /// Runs file operations around the database at a path, their errors in this module's terms.
  static func translating<R>(
    _ path: FilePath, _ body: () throws(FileError) -> R
  ) throws(SealedFileError) -> R {
    do throws(FileError) {
      return try body()
    } catch {
      throw SealedFileError(error, path)
    }
  }
}
