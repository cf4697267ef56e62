/// What was done to the rows of a salvaged database so that they agree with each other:
/// `docs/verify-and-salvage.md`, "Messages".
public struct MessageMending: Sendable, Hashable, Codable {
  /// A channel's share.
  public struct Channel: Sendable, Hashable, Codable {
    /// Its name; `recovered-N` where the name is lost.
    public let channel: String
    /// Messages that are there.
    public let messageCount: Int
    /// Messages that are lost, by what the channel had counted; nil where its row is lost too.
    public let lostMessageCount: Int?
  }

  /// The channels, by name.
  public internal(set) var channels: [Channel] = []
  /// Messages that nobody could have read.
  public internal(set) var unreadableMessageCount = 0
  /// Rows of consumers, deliveries, dead letters and the like that referred to what is lost.
  public internal(set) var strayRowCount = 0
  /// Messages that a consumer gets, perhaps again, as it is lost whether it had them.
  public internal(set) var redeliveredCount = 0
  /// Whether the engine's row was lost, and was made anew from what is there.
  public internal(set) var madeEngineRow = false
  /// Tables of the engine that were lost, with all of their rows.
  public internal(set) var remadeTables: [String] = []

  /// Whether nothing of the messages is lost, as far as the rows tell.
  public var isComplete: Bool {
    unreadableMessageCount == 0 && strayRowCount == 0 && redeliveredCount == 0 && !madeEngineRow
      && remadeTables.isEmpty && channels.allSatisfy { $0.lostMessageCount == 0 }
  }
}
