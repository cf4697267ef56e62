/// Why a sealed database could not be opened or used.
public struct SealedDatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; new ones may be added.
  public struct Code: Sendable, Hashable {
    let name: String

    /// The key belongs to another database, or to this one before a change of key.
    public static let wrongKey = Code(name: "wrongKey")
    /// A plain SQLite database lies there.
    public static let plainDatabase = Code(name: "plainDatabase")
    /// Something else than a database lies there.
    public static let notSealed = Code(name: "notSealed")
    /// What was called a plain SQLite database is something else.
    public static let notPlainDatabase = Code(name: "notPlainDatabase")
    /// Page 1 does not open as one of SQLCipher 4: wrong passphrase or key, other settings, another
    /// kind of file, or damage; the format does not tell these apart.
    public static let wrongKeyOrNotSQLCipher = Code(name: "wrongKeyOrNotSQLCipher")
    /// A log or journal beside the database holds changes that the file alone lacks.
    public static let notClosed = Code(name: "notClosed")
    /// A later format version.
    public static let newerVersion = Code(name: "newerVersion")
    /// A page of the database or its log does not authenticate: ``SealedDatabaseError/pageNumber``.
    public static let damagedPage = Code(name: "damagedPage")
    /// The rollback journal does not authenticate, and the database needs it.
    public static let damagedJournal = Code(name: "damagedJournal")
    /// A log or a journal lies beside the database that was not written for a sealed one.
    public static let foreignSibling = Code(name: "foreignSibling")
    /// The pages authenticate, and what they hold contradicts itself.
    public static let damaged = Code(name: "damaged")
    /// The file ends before its last page.
    public static let truncated = Code(name: "truncated")
    /// The connection does not go through the sealed VFS; nothing was read or written.
    public static let notOnSealedVFS = Code(name: "notOnSealedVFS")
    /// Another connection is in the way.
    public static let busy = Code(name: "busy")
    /// A file in the making is not this user's alone: another user made it, or could have.
    public static let foreignFile = Code(name: "foreignFile")
    /// The database or its directory may not be written.
    public static let readOnly = Code(name: "readOnly")
    /// A change of key to the key that the database has.
    public static let sameKey = Code(name: "sameKey")
    /// The disk is full.
    public static let diskFull = Code(name: "diskFull")
    /// There is no database, and none was to be made.
    public static let absent = Code(name: "absent")
    /// There is something where a new file was to be made; it is left alone.
    public static let alreadyExists = Code(name: "alreadyExists")
    /// The database was replaced while it was open.
    public static let moved = Code(name: "moved")
    /// The system failed to read or write.
    public static let inputOutput = Code(name: "inputOutput")
    /// A setting did not take effect when it was read back.
    public static let settingRefused = Code(name: "settingRefused")
    /// A key that does not have 32 bytes, or another argument that cannot be used.
    public static let invalidArgument = Code(name: "invalidArgument")
    /// SQLite failed for a reason that is not the file's.
    public static let sqlite = Code(name: "sqlite")
  }

  /// What kind of failure.
  public let code: Code
  /// One line: what and where; never a key or a plaintext.
  public let message: String
  /// What to do next, where that is known.
  public let hint: String?
  /// SQLite's or the VFS's own error.
  public let underlying: (any Error)?
  /// The damaged or missing page, from 1; nil for other failures, and where it is not known.
  public let pageNumber: Int?

  init(
    _ code: Code, _ message: String, hint: String? = nil, underlying: (any Error)? = nil,
    pageNumber: Int? = nil
  ) {
    self.code = code
    self.message = message
    self.hint = hint
    self.underlying = underlying
    self.pageNumber = pageNumber
  }

  /// The message.
  public var description: String { message }
}
