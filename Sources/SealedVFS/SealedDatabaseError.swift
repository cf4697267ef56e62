package import FileLayer
internal import VaultCrypto
internal import SystemPackage

/// An error in opening or using a sealed database, or in one of its files.
public struct SealedDatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions can add more.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name, stable for programs.
    public let description: String
    fileprivate let message: String
    fileprivate let hint: String?

    private init(_ name: String, _ message: String, hint: String? = nil) {
      description = name
      self.message = message
      self.hint = hint
    }

    /// The file is sealed under another key.
    public static let wrongKey = Code(
      "wrongKey", "the key does not open this database",
      hint: "use the key of this database; after a key change, use the new key")
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
    /// A page of the database or its log does not authenticate:
    /// ``SealedDatabaseError/pageNumber``.
    public static let damagedPage = Code(
      "damagedPage", "a page is damaged",
      hint: "keep the files as they are; restore a backup, or salvage the intact rows")
    /// The rollback journal does not authenticate, and the database needs it.
    public static let damagedJournal = Code(
      "damagedJournal", "the rollback journal is damaged, and the database needs it",
      hint: "restore the journal or the database from a backup")
    /// A log or journal beside the database was not written for it.
    public static let unrelatedCompanionFile = Code(
      "unrelatedCompanionFile", "the log or journal beside the database is not a sealed one",
      hint: "if the file belongs to another program, move it away")
    /// The file ends before its last page.
    public static let truncated = Code(
      "truncated", "the file is truncated",
      hint: "keep the files as they are; restore a backup, or salvage the intact rows")
    /// The file was renamed or replaced while it was open.
    public static let fileReplaced = Code(
      "fileReplaced", "the database was replaced while it was open", hint: "open it again")
    /// A write would lose bytes, because the page's 40 reserved bytes are in use.
    public static let reserveInUse = Code(
      "reserveInUse", "the pages leave no room for nonce and tag",
      hint: "set SQLITE_FCNTL_RESERVE_BYTES to 40 and VACUUM")
    /// SQLite tried to write pages of another size than 4096 bytes.
    ///
    /// `PRAGMA page_size` on another database of the connection, or a backup, causes this.
    public static let otherPageSize = Code(
      "otherPageSize", "SQLite tried to write pages that are not 4096 bytes long",
      hint: "run PRAGMA page_size = 4096 on the source database, then retry")
    /// A VFS above the sealed one hides the database file.
    ///
    /// Its log or journal would be written in the clear.
    public static let hiddenByVFS = Code(
      "hiddenByVFS", "a VFS above the sealed one hides the database file",
      hint: "remove that VFS, or use one that passes xFileControl on")
    /// Page 1 does not open as one of SQLCipher 4; the format cannot tell the possible reasons
    /// apart.
    public static let wrongKeyOrNotSQLCipher = Code(
      "wrongKeyOrNotSQLCipher", "wrong key, or not an SQLCipher 4 database with default settings",
      hint: "check the passphrase or key, then the settings that the database was made with")
    /// The file given as a plain database is not one.
    public static let notPlainDatabase = Code(
      "notPlainDatabase", "this is not a plain SQLite database")
    /// The file given as a database is empty, or is a directory, pipe or device.
    public static let notDatabaseFile = Code(
      "notDatabaseFile", "this is not a database file", hint: "check the path")
    /// A log or journal beside the file holds changes that the file alone lacks.
    public static let notClosed = Code(
      "notClosed", "the database was not closed",
      hint: "open it with the program that wrote it, and close it there")
    /// A file exists at the path of the file to be made.
    public static let alreadyExists = Code(
      "alreadyExists", "a file exists already",
      hint: "name another file, or move the existing one away")
    /// The pages authenticate, but their contents contradict each other.
    public static let damaged = Code(
      "damaged", "the database is damaged",
      hint: "verify it, then restore a backup, or salvage the intact rows")
    /// SQLite failed for a reason other than the file.
    public static let sqlite = Code("sqlite", "SQLite refuses the operation")
    /// A setting did not read back as it was set.
    public static let settingRefused = Code("settingRefused", "SQLite refuses the setting")
    /// Other connections are using the database.
    public static let busy = Code(
      "busy", "the database is in use", hint: "close it in all other programs, or try again")
    /// The connection does not use the sealed VFS; nothing was changed.
    public static let notOnSealedVFS = Code(
      "notOnSealedVFS", "the connection is not on the sealed VFS",
      hint: "open it with SealedDatabase.openPool; one process must hold one SQLite library")
    /// There is no database, and the call must not create one.
    public static let notFound = Code("notFound", "the database does not exist, or is empty")
    /// Another user made a temporary file, or could have made it.
    public static let foreignFile = Code(
      "foreignFile", "a file of another user is in the way",
      hint: "check its owner and remove it, or use a directory of this user alone")
    /// This process cannot write the file or its directory.
    public static let readOnly = Code(
      "readOnly", "the database or its directory cannot be written",
      hint: "check their owner and permissions, and how the volume is mounted")
    /// The new key of a key change is the present key.
    public static let sameKey = Code(
      "sameKey", "the new key is the database's present key", hint: "generate another key")
    /// The disk is full.
    public static let diskFull = Code(
      "diskFull", "the disk is full", hint: "free some space")
    /// The system failed to read or write.
    public static let inputOutput = Code("inputOutput", "reading or writing failed")
    /// A URI asks for the sealed VFS, but names no key, or more than one.
    public static let keyNotNamed = Code(
      "keyNotNamed", "no key is named for this database",
      hint: "name a key file with keyfile=PATH, or an open descriptor with keyfd=NUMBER")
    /// A key was written into a URI or an SQL statement.
    public static let keyInText = Code(
      "keyInText", "a key must not appear in a URI or in SQL, where logs and history keep it",
      hint: "generate a new key, store its 32 bytes in a file, and name the file with keyfile=PATH"
    )
    /// A key file, or a descriptor that should give a key, cannot be used.
    public static let keyFileRefused = Code(
      "keyFileRefused", "the key cannot be read",
      hint: "store 32 raw bytes in a file that only its owner can read (chmod 600)")
    /// A `VACUUM INTO` would write a sealed database in the clear, or into a file without the mark.
    public static let vacuumTargetRefused = Code(
      "vacuumTargetRefused", "VACUUM INTO does not write to this file",
      hint: "add sealed_vacuum_into=1 and a key to its URI, or vfs=unix for a plain copy; "
        + "in a program, call SealedDatabase.vacuum(_:into:key:)")
    /// A key that does not have 32 bytes, or another argument that cannot be used.
    public static let invalidArgument = Code("invalidArgument", "invalid argument")
  }

  /// The kind of failure.
  public let code: Code
  /// One line with the path and the failure; it never contains a key or a plaintext.
  public let message: String
  /// The next step, if one is known.
  public let hint: String?
  /// The error of SQLite or of the system, if one was the cause.
  public let underlying: (any Error)?
  /// The damaged or missing page, from 1; nil for other failures, and if the page is unknown.
  public let pageNumber: UInt32?
  /// The part of the message that comes from SQLite or the system.
  package let detail: String?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - path: the database or the key file; empty if no file is at fault.
  ///   - hint: the next step; nil takes the code's.
  package init(
    _ code: Code, path: String, pageNumber: UInt32? = nil, detail: String? = nil,
    hint: String? = nil, underlying: (any Error)? = nil
  ) {
    let page = pageNumber.map { " (page \($0))" } ?? ""
    self.code = code
    message =
      (path.isEmpty ? "" : "\(path): ") + code.message + page + (detail.map { ": \($0)" } ?? "")
    self.hint = hint ?? code.hint
    self.underlying = underlying
    self.pageNumber = pageNumber
    self.detail = detail
  }

  /// The message, and the hint in brackets.
  public var description: String { hint.map { "\(message) (\($0))" } ?? message }
}

extension SealedDatabaseError {
  /// What lies at the path of a database's log, index or journal cannot be one.
  static func notRegularFile(_ companion: String, of path: String) -> SealedDatabaseError {
    SealedDatabaseError(.inputOutput, path: path, detail: "\(companion) is not a regular file")
  }

  /// Makes the error for a failed operation on a file.
  package init(_ error: FileError) {
    let code: Code =
      switch error.errno {
      case _ where error.refusal != nil: .foreignFile
      case .noSpace, .diskQuotaExceeded: .diskFull
      case .permissionDenied, .notPermitted, .readOnlyFileSystem: .readOnly
      default: .inputOutput
      }
    self.init(code, path: "", detail: error.description, hint: error.hint, underlying: error)
  }
}

extension SealedDatabaseError {
  /// Makes the error for a failure of OpenSSL, which says nothing about the file at `path`.
  init(_ error: CryptoError, path: String) {
    self.init(.inputOutput, path: path, detail: error.description, underlying: error)
  }

  /// Makes the error for a failed call of the underlying VFS on the file at `path`.
  init(_ error: ResultCode, path: String) {
    self.init(
      error.isBusy ? .busy : .inputOutput, path: path,
      detail: error.isBusy ? nil : error.description, underlying: error)
  }

  /// Whether memory ran out, the only reason for which OpenSSL fails here.
  var isOutOfMemory: Bool {
    underlying is CryptoError || (underlying as? ResultCode)?.isOutOfMemory == true
  }
}

/// Runs a step of a cipher on the file at `path`, and translates its error.
@inline(__always)
func translatingCryptoErrors<R>(
  at path: String, _ step: @autoclosure () throws(CryptoError) -> R
) throws(SealedDatabaseError) -> R {
  do throws(CryptoError) {
    return try step()
  } catch {
    throw SealedDatabaseError(error, path: path)
  }
}

/// Runs an operation on files, and translates its error.
func translatingFileErrors<R>(
  _ operation: @autoclosure () throws(FileError) -> R
) throws(SealedDatabaseError) -> R {
  do throws(FileError) {
    return try operation()
  } catch {
    throw SealedDatabaseError(error)
  }
}
