/// What reading every page and every frame of a sealed database found:
/// `docs/reference/verify-and-salvage.md`.
public struct VerificationReport: Sendable, Equatable, Codable {
  /// How many entries the lists hold at most; the counts beside them are of all.
  public static let listLimit = 1000

  /// Pages in the file, a part of one at its end included.
  public internal(set) var pageCount = 0

  /// Pages of the database as SQLite would see it, log or hot journal considered.
  public internal(set) var databasePageCount = 0

  /// Pages that do not authenticate, or that the device does not give, from 1; the first thousand.
  ///
  /// Pages behind the end of the database, and free ones, are read but do not count.
  public internal(set) var damagedPages: [UInt32] = []

  /// How many pages are damaged, ``repairedPageCount`` included.
  public internal(set) var damagedPageCount = 0

  /// Pages that do not authenticate and that the database's list of free pages names: they hold nothing.
  ///
  /// A power cut in a transaction that took them into use leaves them torn, as no journal has a copy of
  /// a free page.
  public internal(set) var damagedFreePageCount = 0

  /// Pages of zeros that the database's list of free pages does not explain: their contents are lost.
  public internal(set) var emptyPages: [UInt32] = []

  /// How many pages are empty without reason.
  public internal(set) var emptyPageCount = 0

  /// Pages that the database should have and neither the file nor the log has, cut ones included.
  public internal(set) var missingPageCount = 0

  /// Bytes of the file after its last whole page.
  public internal(set) var trailingByteCount = 0

  /// Damaged pages of which log or journal hold the copy that counts: the next
  /// checkpoint or rollback repairs them.
  public internal(set) var repairedPages: [UInt32] = []

  /// How many are repaired so.
  public internal(set) var repairedPageCount = 0

  /// Whether the 16 bytes at the start of the file are not what they were, and the key opens the
  /// pages all the same.
  public internal(set) var isHeaderDamaged = false

  /// The write-ahead log.
  public internal(set) var log = Log(state: .absent)

  /// The rollback journal.
  public internal(set) var journal = Journal(state: .absent)

  /// Whether SQLite was asked about the contents.
  public internal(set) var contentCheck = ContentCheckState.notAsked

  /// Where authentic pages contradict each other, in SQLite's words; the first hundred.
  ///
  /// A page that was replaced by an older version of itself shows so, and a fault of a program.
  public internal(set) var contentFaults: [String] = []

  /// Tables whose indexes or expressions need functions or collations of the application: their
  /// contents, and the list of free pages, were not checked.
  public internal(set) var uncheckedTables: [String] = []

  /// How far the contents were looked at.
  public enum ContentCheckState: String, Sendable, Codable {
    /// Nobody asked for it.
    case notAsked
    /// Something does not authenticate or is not there: SQLite could not read on.
    case notPossible
    /// `PRAGMA integrity_check` ran, ``Verification/uncheckedTables`` aside.
    case done
  }

  /// What there is of a write-ahead log.
  public struct Log: Sendable, Equatable, Codable {
    /// The kinds of log.
    public enum State: String, Sendable, Codable {
      /// No file.
      case absent
      /// Shorter than a header, or its header is not whole: torn when it was first written, and it
      /// holds nothing; or damaged, and its frames are a discarded tail.
      case empty
      /// A whole log that is not a sealed one: opening the database will be refused.
      case foreign
      /// A log of this format.
      case sealed
    }

    /// What kind of log.
    public internal(set) var state: State
    /// Whole frames in the file.
    public internal(set) var frameCount = 0
    /// Frames from the first on that authenticate and follow one another.
    public internal(set) var validFrameCount = 0
    /// Frames up to the last commit: what SQLite uses.
    public internal(set) var committedFrameCount = 0
    /// Frames at the end that are older than the log's last restart: no fault.
    public internal(set) var staleFrameCount = 0
    /// Frames of the present generation that SQLite will not use.
    ///
    /// A torn tail after a power cut, or damage: the two cannot be told apart.
    public internal(set) var discardedTail: DiscardedLogTail?
    /// Frames that count and whose copy of page 1 has other bytes for the file's header, from 1; the
    /// first thousand.
    ///
    /// Somebody changed them: they are clear and not authenticated there. Nothing is lost, as every
    /// reader takes the file's own header, and so does a checkpoint.
    public internal(set) var changedHeaderFrames: [Int] = []
    /// Commits that SQLite will not use, as the log's header names another generation, and that the
    /// database lacks: the header may have been changed.
    public internal(set) var otherGeneration: OtherGeneration?

    /// Commits that begin at frame 1, of another generation than the log's header names.
    public struct OtherGeneration: Sendable, Equatable, Codable {
      /// Frames up to the last of these commits.
      public let frameCount: Int
      /// How many commits.
      public let commitCount: Int
      /// Pages of which the database does not hold the copy that was committed last.
      public let missingPageCount: Int
    }

    init(state: State) { self.state = state }
  }

  /// What there is of a rollback journal.
  public struct Journal: Sendable, Equatable, Codable {
    /// The kinds of journal.
    public enum State: String, Sendable, Codable {
      /// No file.
      case absent
      /// Left over, and not used by anyone.
      case finished
      /// Of a transaction that another connection is in.
      case inUse
      /// Of an interrupted transaction: the next opening rolls it back.
      case hot
      /// Its header does not authenticate, or its super-journal pointer is refused: the database cannot
      /// be opened beside it.
      case damaged
      /// Not a sealed journal: opening the database will be refused.
      case foreign
    }

    /// What kind of journal.
    public internal(set) var state: State
    /// Page records that were read.
    public internal(set) var recordCount = 0
    /// Records that do not authenticate though the journal says that they were complete, from 1; the
    /// first thousand.
    public internal(set) var damagedRecords: [Int] = []
    /// How many do not.
    public internal(set) var damagedRecordCount = 0
    /// Records of page 1 that have other bytes for the file's header, as
    /// ``Log/changedHeaderFrames``.
    public internal(set) var changedHeaderRecords: [Int] = []
    /// Why what its end names as its super-journal is refused; nil when it is not.
    public internal(set) var superJournalFault: String?
    /// Whether it is part of a transaction over several databases whose super-journal is missing:
    /// SQLite takes that for the sign of a commit, and rolls nothing back.
    public internal(set) var lacksSuperJournal = false
    /// Records that open and that no opening will use: the transaction has committed, or the header
    /// does not open.
    ///
    /// A journal that is kept (`journal_mode=PERSIST`) has such records; so has one whose header was
    /// destroyed. The two cannot be told apart.
    public internal(set) var unusedRecordCount = 0

    init(state: State) { self.state = state }
  }

  /// Pages whose contents nobody has any more.
  public var lostPageCount: Int {
    damagedPageCount + emptyPageCount + missingPageCount - repairedPageCount
  }

  /// Whether everything that SQLite will read is as it was written, and its contents, as far as they
  /// were checked, agree: ``isAuthentic`` and no ``contentFaults``.
  public var isClean: Bool { isAuthentic && contentFaults.isEmpty }

  /// Whether each page that SQLite will read is one that was written there, in whichever version.
  ///
  /// A discarded tail of the log, and what log or journal repair, are what a power cut leaves: they
  /// are told, and do not count. Nor do ``Log/otherGeneration`` and ``Log/changedHeaderFrames``.
  public var isAuthentic: Bool {
    lostPageCount == 0 && !isHeaderDamaged && log.state != .foreign
      && journal.state != .foreign && journal.state != .damaged
      && journal.damagedRecordCount == 0
  }
}
