/// The result of salvaging a damaged database, table by table: `docs/reference/verify-and-salvage.md`.
public struct SalvageReport: Sendable, Equatable, Codable {
  /// The most ranges in a table's report.
  public static let rangeLimit = 1000

  /// The tables, in the order of the old schema.
  public package(set) var tables: [Table] = []

  /// The number of rows whose table is unknown or refuses them; they are in ``lostAndFoundName``.
  public package(set) var lostAndFoundRowCount = 0

  /// The name of the table with these rows; nil if there are none.
  public package(set) var lostAndFoundName: String?

  /// Whether every entry of the old schema could be read.
  public package(set) var isSchemaWhole = true

  /// Whether text encoding, user version, application id and auto-vacuum mode could be read.
  ///
  /// If not, the new database has SQLite's defaults.
  public package(set) var areSettingsKept = true

  /// Indexes, triggers, views and tables of the old schema that could not be created again.
  public package(set) var notRecreated: [Refusal] = []

  /// Whether the hot journal was intact where it was needed, and no foreign log or journal was
  /// there.
  ///
  /// If not, the new database can have rows of an unfinished transaction, and lack rows that the
  /// transaction had removed.
  public package(set) var areLogAndJournalWhole = true

  /// The frames at the end of the log that were left out, after a power cut or because of damage.
  public package(set) var discardedLogTail: DiscardedLogTail?

  /// Commits that the log's header hides, and that were copied; nil where there are none.
  public package(set) var otherGeneration: VerificationReport.Log.OtherGeneration?

  /// The report on one table.
  public struct Table: Sendable, Equatable, Codable {
    /// The table's name.
    public package(set) var name: String
    /// The number of rows in the new table.
    public package(set) var rowsCopied = 0
    /// The number of lost pages of the table's b-tree.
    public package(set) var pagesLost = 0
    /// The least number of rows that are lost.
    ///
    /// It counts one row for each lost page of which nothing was found, and each row that is lost
    /// in part. It is 0 beside a range in ``lostRanges`` if an unreadable page could have held rows of
    /// this table.
    public package(set) var rowsLostAtLeast = 0
    /// The rowid ranges of the lost rows, as far as the pages around them show; the first thousand.
    public package(set) var lostRanges: [RowIDRange] = []

    package init(name: String) { self.name = name }
  }

  /// A range of rowids in which rows are lost; not every rowid in it was a row.
  public struct RowIDRange: Sendable, Equatable {
    /// The first rowid; nil if it is unknown.
    public let first: Int64?
    /// The last rowid; nil if it is unknown.
    public let last: Int64?

    package init(first: Int64?, last: Int64?) {
      self.first = first
      self.last = last
    }
  }

  /// An entry of the schema that is not in the new database.
  public struct Refusal: Sendable, Equatable, Codable {
    /// The name of the entry.
    public let name: String
    /// The reason, in SQLite's words.
    public let reason: String

    package init(name: String, reason: String) {
      self.name = name
      self.reason = reason
    }
  }

  package init() {}

  /// The number of rows in the new database, those of ``lostAndFoundName`` included.
  public var rowsCopied: Int { tables.reduce(lostAndFoundRowCount) { $0 + $1.rowsCopied } }

  /// Whether the new database has all data of the old one, and nothing else.
  ///
  /// A discarded tail of the log does not count, because a power cut leaves one, too.
  public var isComplete: Bool {
    isSchemaWhole && areSettingsKept && areLogAndJournalWhole && notRecreated.isEmpty
      && lostAndFoundRowCount == 0
      && tables.allSatisfy { $0.rowsLostAtLeast == 0 && $0.lostRanges.isEmpty }
  }
}

/// Rowids are coded as strings: JSON readers that store numbers as doubles would lose digits.
extension SalvageReport.RowIDRange: Codable {
  private enum Member: CodingKey { case first, last }

  /// Decodes a range that ``encode(to:)`` has written.
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

  /// Encodes the range.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Member.self)
    try container.encodeIfPresent(first.map { "\($0)" }, forKey: .first)
    try container.encodeIfPresent(last.map { "\($0)" }, forKey: .last)
  }
}
