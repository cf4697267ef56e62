internal import FileLayer
package import GRDB
internal import VaultCrypto

/// The engine's tables on a database pool.
///
/// Every operation is a function of a transaction, leaves the commit to its caller and blocks the
/// calling thread. It runs on any pool, sealed or plain.
package final class EngineDatabase: Sendable {
  let pool: DatabasePool
  let time: any TimeSource
  let random: RandomSource
  let configuration: EngineConfiguration
  /// Wakes receivers after a commit that published.
  let notifier: ChangeNotifier
  /// Counts the operations of each commit; nil if no backend takes metrics.
  let commitCounter: CommitCounter?
  /// The pool's one writing connection.
  let writer: ObjectIdentifier
  /// The number of this boot; a hold with a smaller number has ended.
  let bootNumber: Int64
  /// Whether the home is one of several: it has the tables of replication.
  let isReplicated: Bool

  /// Makes the tables of a new database, and makes SQLite sync at each commit.
  ///
  /// - Parameter pool: if its tables can be of an older version, ``EngineSchema/migrateAlone(_:)`` has migrated them.
  /// - Throws: `busy`, `diskFull`, `newerVersion`, `damaged`, `inputOutput`.
  init(
    pool: DatabasePool, time: any TimeSource, random: RandomSource,
    configuration: EngineConfiguration, notifier: ChangeNotifier, commitCounter: CommitCounter?
  ) throws(EngineError) {
    self.pool = pool
    self.commitCounter = commitCounter
    self.notifier = notifier
    self.time = time
    self.random = random
    self.configuration = configuration
    let bootID = time.bootID
    let busyTimeout = configuration.busyTimeout
    (writer, bootNumber, isReplicated) = try translatingErrors(
      during: "starting on the message database"
    ) {
      try pool.writeWithoutTransaction { db in
        try db.execute(
          sql:
            "PRAGMA busy_timeout = \(min(busyTimeout, .seconds(86_400)).wholeNanoseconds / 1_000_000)"
        )
      }
      return try pool.writeWithoutTransaction { db in
        try Self.ensureFullDurability(db)
        try EngineSchema.ensureIncrementalVacuum(db)
        db.add(transactionObserver: PublicationObserver(notifier), extent: .databaseLifetime)
        if let commitCounter {
          db.add(transactionObserver: commitCounter, extent: .databaseLifetime)
        }
        return try db.inImmediateTransaction {
          try EngineSchema.makeNewestTables(db)
          return (
            ObjectIdentifier(db), try Self.enterBoot(bootID, db),
            try db.tableExists("replication_state")
          )
        }
      }
    }
  }

  /// The same tables at another time.
  init(_ tables: EngineDatabase, time: any TimeSource) {
    self.time = time
    pool = tables.pool
    random = tables.random
    configuration = tables.configuration
    notifier = tables.notifier
    commitCounter = tables.commitCounter
    writer = tables.writer
    bootNumber = tables.bootNumber
    isReplicated = tables.isReplicated
  }

  /// The time on the boot clock, which neither jumps nor stops while the machine sleeps.
  var nanosecondsSinceBoot: Int64 { time.sinceBoot.wholeNanoseconds }

  /// GRDB sets NORMAL after it has opened a pool; a commit would then be durable only at the next
  /// checkpoint.
  private static func ensureFullDurability(_ db: Database) throws {
    let full = 2
    if let level = try Int.fetchOne(db, sql: "PRAGMA synchronous"), level >= full { return }
    try db.execute(sql: "PRAGMA synchronous = FULL")
    guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == full else {
      throw EngineError(
        .inputOutput, "SQLite refused to make commits durable",
        hint: "check that the SQLite library is the distribution's own")
    }
  }

  /// Writes what the operations of a transaction have in common, if one changed something: the sums
  /// of their publications, and the number of the commit.
  ///
  /// - Parameter isLast: whether nothing else of the transaction counts it or can be undone alone.
  static func finish(
    _ publication: inout Publication?, isLast: Bool = false, _ db: Database
  ) throws {
    let isCounted = try publication.take()?.finish(countsCommit: true, isLast: isLast) ?? false
    if !isCounted { try countCommit(db) }
  }

  /// Counts a transaction that changes something.
  ///
  /// An older copy of the database is recognised by this number, which only a salvage also changes.
  static func countCommit(_ db: Database) throws {
    try db.run("UPDATE engine SET commit_number = commit_number + 1")
  }

  private static func enterBoot(_ bootID: String, _ db: Database) throws -> Int64 {
    let row = try Row.fetchOne(db, sql: "SELECT boot_number, boot_id FROM engine")
    guard let row else { throw EngineError.engineRowMissing }
    let number: Int64 = row["boot_number"]
    if row["boot_id"] == bootID { return number }
    let next = try EngineError.following(number, "boot")
    try db.run("UPDATE engine SET boot_number = ?, boot_id = ?", next, bootID)
    try countCommit(db)
    return next
  }
}

extension EngineDatabase {
  /// The number of a channel that was published to or has settings; nil for any other.
  static func channelID(_ channel: Channel, _ db: Database) throws -> Int64? {
    try db.number("SELECT id FROM channel WHERE name = ?", channel.name)
  }

  /// The number of a channel; adds the channel if it is new.
  ///
  /// A channel of an application keeps acknowledged messages, so that a fast worker takes none from a subscriber or
  /// from history. It begins with the mark of the application's removed channels, of which it can be one.
  static func makeChannelID(_ channel: Channel, _ db: Database) throws -> Int64 {
    if let id = try channelID(channel, db) { return id }
    try db.run(
      "INSERT INTO channel (name, keeps_acknowledged, removed_through) VALUES (?, ?, ?)",
      channel.name, channel.isOfApplication ? 1 : 0, removedChannelsMark(for: channel, db))
    return db.lastInsertedRowID
  }

  /// How far the messages of an application's removed channels went; 0 if no channel was removed.
  ///
  /// It is `removed_through` of the row `application/`: ``ApplicationSweep``.
  static func removedChannelsMark(for channel: Channel, _ db: Database) throws -> Int64 {
    guard let prefix = channel.applicationPrefix else { return 0 }
    return try db.number("SELECT removed_through FROM channel WHERE name = ?", prefix) ?? 0
  }

  /// The priorities that a channel's messages can have, the highest first.
  static func priorities(of channelID: Int64, _ db: Database) throws -> [Priority] {
    let others = try db.number(
      "SELECT EXISTS (SELECT 1 FROM message WHERE channel_id = ? AND priority <> 4)", channelID)
    return others == 1 ? Priority.descending : [.normal]
  }

  /// How far a consumer has received its channel, by priority.
  static func positions(of consumerID: Int64, _ db: Database) throws -> [Int: Int64] {
    let select = try db.cachedStatement(
      sql: "SELECT priority, timetoken FROM position WHERE consumer_id = ?")
    let rows = try Row.fetchAll(select, arguments: [consumerID])
    return Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 })
  }
}

extension EngineDatabase {
  /// Counts messages, consumers and dead letters in the caller's snapshot; see
  /// ``StatisticsReader``.
  ///
  /// - Parameter channel: the one channel to count; nil for all.
  package func statistics(_ db: Database, of channel: Channel? = nil) throws -> EngineStatistics {
    try StatisticsReader(
      db: db, bootNumber: bootNumber, bootNow: nanosecondsSinceBoot,
      wallNow: WallTime.ticks(of: time.now)
    ).read(channel)
  }
}
