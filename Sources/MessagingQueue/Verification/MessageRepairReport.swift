/// The changes of a repair to the rows of a salvaged database: `docs/reference/verify-and-salvage.md`,
/// "Messages".
public struct MessageRepairReport: Sendable, Hashable, Codable {
  /// The part of one channel.
  public struct Channel: Sendable, Hashable, Codable {
    /// The name; `recovered-N` if the name is lost.
    public let channel: String
    /// Messages in the repaired database.
    public let messageCount: Int
    /// Messages that are lost, by the channel's own count; nil if its row is lost too.
    public let lostMessageCount: Int?
  }

  /// The channels, by name.
  public internal(set) var channels: [Channel] = []
  /// Messages that were dropped because they cannot be read.
  public internal(set) var unreadableMessageCount = 0
  /// Rows of consumers, deliveries, dead letters and the like that referred to lost rows.
  public internal(set) var orphanedRowCount = 0
  /// Messages that a consumer gets, possibly again, as the record of its deliveries is lost.
  public internal(set) var redeliveredCount = 0
  /// Whether the engine's row was lost and was rebuilt from the other rows.
  public internal(set) var rebuiltEngineRow = false
  /// Rows with values that no engine writes, which were corrected or left out.
  public internal(set) var correctedRowCount = 0
  /// Triggers on the engine's tables, which were left out: the engine has none.
  public internal(set) var removedTriggers: [String] = []
  /// Tables of the engine that were lost with all their rows, and were created again.
  public internal(set) var rebuiltTables: [String] = []

  /// Whether no message is lost, as far as the rows show.
  public var isComplete: Bool {
    unreadableMessageCount == 0 && orphanedRowCount == 0 && redeliveredCount == 0
      && correctedRowCount == 0 && removedTriggers.isEmpty && !rebuiltEngineRow
      && rebuiltTables.isEmpty && channels.allSatisfy { $0.lostMessageCount == 0 }
  }
}
