/// The result of verifying every page and every frame of a sealed database:
/// `docs/reference/verify-and-salvage.md`.
public struct VerificationReport: Sendable, Equatable, Codable {
  /// The most entries in each list; the counts beside the lists are complete.
  public static let listLimit = 1000

  /// The number of pages in the file, including an incomplete one at its end.
  public internal(set) var pageCount = 0

  /// The number of pages of the database as SQLite would see it, with its log or hot journal.
  public internal(set) var databasePageCount = 0

  /// The first thousand pages, from 1, that do not authenticate or cannot be read.
  ///
  /// Pages after the end of the database and free pages are read, but do not count.
  public internal(set) var damagedPages: [UInt32] = []

  /// The number of damaged pages, ``repairedPageCount`` included.
  public internal(set) var damagedPageCount = 0

  /// The number of free pages that do not authenticate; they hold no data.
  ///
  /// The database's list of free pages names them. A power cut in a transaction that allocates such
  /// a page leaves it torn, because no journal has a copy of a free page.
  public internal(set) var damagedFreePageCount = 0

  /// Pages of zeros that are not in the database's list of free pages: their contents are lost.
  public internal(set) var emptyPages: [UInt32] = []

  /// The number of pages that are empty and not free.
  public internal(set) var emptyPageCount = 0

  /// The number of pages of the database that are in neither file nor log, incomplete ones
  /// included.
  public internal(set) var missingPageCount = 0

  /// The number of bytes in the file after its last whole page.
  public internal(set) var trailingByteCount = 0

  /// Damaged pages whose current copy is in the log or journal; a checkpoint or rollback repairs
  /// them.
  public internal(set) var repairedPages: [UInt32] = []

  /// The number of pages that are repaired so.
  public internal(set) var repairedPageCount = 0

  /// Whether the first 16 bytes of the file are wrong, although the key opens the pages.
  public internal(set) var isHeaderDamaged = false

  /// The write-ahead log.
  public internal(set) var log = Log(state: .absent)

  /// The rollback journal.
  public internal(set) var journal = Journal(state: .absent)

  /// Whether SQLite checked the contents.
  public internal(set) var contentCheck = ContentCheckState.notAsked

  /// The first hundred contradictions between authentic pages, in SQLite's words.
  ///
  /// They are signs of a page that was replaced by an older version of itself, or of a program's
  /// fault.
  public internal(set) var contentFaults: [String] = []

  /// Tables whose indexes or expressions need functions or collations of the application.
  ///
  /// Their contents, and the list of free pages, were not checked.
  public internal(set) var uncheckedTables: [String] = []

  /// The extent of the check of the contents.
  public enum ContentCheckState: String, Sendable, Codable {
    /// The caller did not ask for the check.
    case notAsked
    /// A page does not authenticate or is missing, so that SQLite could not read all pages.
    case notPossible
    /// `PRAGMA integrity_check` ran, except for ``VerificationReport/uncheckedTables``.
    case done
  }

  /// The state of a write-ahead log.
  public struct Log: Sendable, Equatable, Codable {
    /// The kinds of log.
    public enum State: String, Sendable, Codable {
      /// There is no file.
      case absent
      /// The file is shorter than a header, or its header is invalid.
      ///
      /// A header torn at its first write belongs to an empty log. The frames after a damaged
      /// header are a discarded tail.
      case empty
      /// The log is whole but not sealed: opening the database will fail.
      case foreign
      /// The log is a sealed one.
      case sealed
    }

    /// The kind of log.
    public internal(set) var state: State
    /// The number of whole frames in the file.
    public internal(set) var frameCount = 0
    /// The number of frames, from the first, that authenticate and follow one another.
    public internal(set) var validFrameCount = 0
    /// The number of frames up to the last commit, which SQLite uses.
    public internal(set) var committedFrameCount = 0
    /// The number of frames at the end from before the log's last restart; they are not a fault.
    public internal(set) var staleFrameCount = 0
    /// Frames of the present generation that SQLite will not use.
    ///
    /// They are a torn tail after a power cut, or damage. The two cannot be told apart.
    public internal(set) var discardedTail: DiscardedLogTail?
    /// The first thousand valid frames, from 1, whose copy of page 1 has a changed file header.
    ///
    /// Somebody changed those bytes, which are in the clear and not authenticated there. Nothing is
    /// lost: readers and checkpoints use the file's own header.
    public internal(set) var changedHeaderFrames: [Int] = []
    /// Commits that SQLite will not use and that the database lacks.
    ///
    /// The log's header names another generation, and might have been changed.
    public internal(set) var otherGeneration: OtherGeneration?

    /// Commits from frame 1 on, of another generation than the log's header names.
    public struct OtherGeneration: Sendable, Equatable, Codable {
      /// The number of frames up to the last of these commits.
      public let frameCount: Int
      /// The number of commits.
      public let commitCount: Int
      /// The number of pages whose last committed copy is not in the database.
      public let missingPageCount: Int
    }
  }

  /// The state of a rollback journal.
  public struct Journal: Sendable, Equatable, Codable {
    /// The kinds of journal.
    public enum State: String, Sendable, Codable {
      /// There is no file.
      case absent
      /// The journal is left over from a finished transaction, and is not used.
      case finished
      /// Another connection is writing the journal in its transaction.
      case inUse
      /// The journal belongs to an interrupted transaction, which the next opening rolls back.
      case hot
      /// The header does not authenticate, or the super-journal pointer is invalid.
      ///
      /// The database cannot be opened beside such a journal.
      case damaged
      /// The journal is not a sealed one: opening the database will fail.
      case foreign
    }

    /// The kind of journal.
    public internal(set) var state: State
    /// The number of page records that were read.
    public internal(set) var recordCount = 0
    /// The first thousand records, from 1, that do not authenticate although the journal counts
    /// them as complete.
    public internal(set) var damagedRecords: [Int] = []
    /// The number of such records.
    public internal(set) var damagedRecordCount = 0
    /// Records of page 1 with a changed file header, as in ``Log/changedHeaderFrames``.
    public internal(set) var changedHeaderRecords: [Int] = []
    /// The reason for refusing the super-journal pointer; nil if it is valid or absent.
    public internal(set) var superJournalFault: String?
    /// Whether the journal's super-journal is missing.
    ///
    /// It is part of a transaction over several databases. SQLite takes the missing file for the
    /// sign of a commit, and rolls nothing back.
    public internal(set) var lacksSuperJournal = false
    /// The number of records that open and that no opening will use.
    ///
    /// A journal that is kept after its commit (`journal_mode=PERSIST`) has such records. So has
    /// one whose header was destroyed. The two cannot be told apart.
    public internal(set) var unusedRecordCount = 0
  }

  /// The number of pages whose contents are lost.
  public var lostPageCount: Int {
    damagedPageCount + emptyPageCount + missingPageCount - repairedPageCount
  }

  /// Whether the database is authentic and no contradiction in its contents was found.
  ///
  /// This is ``isAuthentic`` and no ``contentFaults``. The contents count as far as they were
  /// checked.
  public var isClean: Bool { isAuthentic && contentFaults.isEmpty }

  /// Whether each page that SQLite will read was written at that place, in its latest or an older
  /// version.
  ///
  /// A power cut leaves a discarded tail of the log, and pages that log or journal repair. These
  /// are reported, but do not count. ``Log/otherGeneration`` and ``Log/changedHeaderFrames`` do not
  /// count, either.
  public var isAuthentic: Bool {
    lostPageCount == 0 && !isHeaderDamaged && log.state != .foreign
      && journal.state != .foreign && journal.state != .damaged
      && journal.damagedRecordCount == 0
  }
}

/// Frames at the end of a write-ahead log that a recovery did not use.
///
/// A torn tail after a power cut looks the same as damage in the middle of the log. In both cases
/// SQLite opens the database without these frames. Only an application that counts its commits can
/// tell the two apart.
public struct DiscardedLogTail: Sendable, Equatable, Codable {
  /// The first frame that was not used; frames count from 1.
  public let firstFrame: Int

  /// The number of frames of the same generation from there on, the first included.
  ///
  /// Frames more than 65,536 frames (257 MiB) after the first are not counted.
  public let frameCount: Int

  static let maximumFrameCount = 65_536

  /// Describes a discarded tail.
  public init(firstFrame: Int, frameCount: Int) {
    self.firstFrame = firstFrame
    self.frameCount = frameCount
  }
}
