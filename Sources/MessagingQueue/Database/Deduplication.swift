internal import GRDB

/// The deduplication ids of one channel, for as long as they are remembered.
struct Deduplication {
  /// Ids whose time is over go a few with each new one, so that no publish waits for many.
  private static let forgottenAtOnce = 16

  private let db: Database
  private let channelID: Int64
  private let now: Int64

  init(_ db: Database, channelID: Int64, now: Int64) {
    self.db = db
    self.channelID = channelID
    self.now = now
  }

  /// The message that was published with this id, if that is remembered.
  func timetoken(of id: String) throws -> Timetoken? {
    let select = try db.cachedStatement(
      sql: "SELECT timetoken FROM deduplication WHERE channel_id = ? AND id = ? AND until > ?")
    return try Int64.fetchOne(select, arguments: [channelID, id, now])
      .map(Timetoken.init(unchecked:))
  }

  func remember(_ id: String, of timetoken: Timetoken, until: Int64) throws {
    try db.cachedStatement(
      sql: """
        DELETE FROM deduplication WHERE (channel_id, id) IN
          (SELECT channel_id, id FROM deduplication WHERE until <= ? ORDER BY until LIMIT ?)
        """
    ).execute(arguments: [now, Self.forgottenAtOnce])
    try db.cachedStatement(sql: "INSERT OR REPLACE INTO deduplication VALUES (?, ?, ?, ?)")
      .execute(arguments: [channelID, id, timetoken.rawValue, until])
  }
}
