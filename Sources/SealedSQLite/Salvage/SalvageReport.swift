public import SealedVFS

/// What was copied out of a damaged database, and what was not: `docs/reference/verify-and-salvage.md`.
public struct SalvageReport: Sendable, Equatable, Codable {
  /// How many ranges a table's report holds at most.
  public static let rangeLimit = 1000

  /// The tables, in the order of the old schema.
  public internal(set) var tables: [Table] = []

  /// Rows whose table is not known or does not take them, in the table ``lostAndFoundName``.
  public internal(set) var lostAndFoundRowCount = 0

  /// The table that holds them; nil when there are none.
  public internal(set) var lostAndFoundName: String?

  /// Whether every entry of the old schema could be read.
  public internal(set) var isSchemaWhole = true

  /// Whether text encoding, user version, application id and auto-vacuum mode could be read; else
  /// the new database has SQLite's defaults.
  public internal(set) var areSettingsKept = true

  /// Indexes, triggers, views and tables of the old schema that could not be made again.
  public internal(set) var notRecreated: [Refusal] = []

  /// Whether what the database needed of its hot journal was whole, and no log or journal of another
  /// kind lay there; else the new database can have rows of a transaction that never ended, and lack
  /// rows that it had removed.
  public internal(set) var areLogAndJournalWhole = true

  /// Frames at the end of the log that were left out: what a power cut leaves, or damage.
  public internal(set) var discardedLogTail: DiscardedLogTail?

  /// One table's share.
  public struct Table: Sendable, Equatable, Codable {
    /// The table's name.
    public internal(set) var name: String
    /// Rows that are in the new table.
    public internal(set) var rowsCopied = 0
    /// Pages of the table's b-tree that are lost.
    public internal(set) var pagesLost = 0
    /// Rows that are lost at least: one for each lost page of which nothing was found, and each row
    /// of which a part is lost.
    public internal(set) var rowsLostAtLeast = 0
    /// Where the lost rows were, as far as pages around them say; the first thousand.
    public internal(set) var lostRanges: [RowIDRange] = []

    init(name: String) { self.name = name }
  }

  /// Rowids among which rows are lost; not every one of them was a row.
  public struct RowIDRange: Sendable, Equatable {
    /// The first; nil when nothing says.
    public let first: Int64?
    /// The last; nil when nothing says.
    public let last: Int64?
  }

  /// An entry of the schema that is not in the new database.
  public struct Refusal: Sendable, Equatable, Codable {
    /// Its name.
    public let name: String
    /// SQLite's words.
    public let reason: String
  }

  /// Rows in the new database, those of ``lostAndFoundName`` included.
  public var rowsCopied: Int { tables.reduce(lostAndFoundRowCount) { $0 + $1.rowsCopied } }

  /// Whether the new database has everything that the old one had, and nothing else; a discarded tail
  /// of the log does not count, as a power cut leaves one too.
  public var isComplete: Bool {
    isSchemaWhole && areSettingsKept && areLogAndJournalWhole && notRecreated.isEmpty
      && lostAndFoundRowCount == 0
      && tables.allSatisfy { $0.rowsLostAtLeast == 0 && $0.lostRanges.isEmpty }
  }
}

/// Rowids are coded as strings: readers of JSON that keep numbers as JavaScript does lose digits of them.
extension SalvageReport.RowIDRange: Codable {
  private enum Member: CodingKey { case first, last }

  /// Makes a range of what ``encode(to:)`` has written.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Member.self)
    func rowID(_ member: Member) throws -> Int64? {
      guard let text = try container.decodeIfPresent(String.self, forKey: member) else {
        return nil
      }
      guard let rowID = Int64(text) else {
        throw DecodingError.dataCorruptedError(
          forKey: member, in: container, debugDescription: "not a rowid")
      }
      return rowID
    }
    self.init(first: try rowID(.first), last: try rowID(.last))
  }

  /// Writes the range.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Member.self)
    try container.encodeIfPresent(first.map { "\($0)" }, forKey: .first)
    try container.encodeIfPresent(last.map { "\($0)" }, forKey: .last)
  }
}
