import FaultVFS
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import SystemPackage

extension RecordedEngine {
  /// Copies the database and its log.
  func copyFiles(to other: RecordedEngine) throws {
    for name in ["messaging.db", "messaging.db-wal"] {
      let path = folder.appending(name).string
      guard FileManager.default.fileExists(atPath: path) else { continue }
      try FileManager.default.copyItem(atPath: path, toPath: other.folder.appending(name).string)
    }
  }

  /// A digest of the state that a kill now would leave.
  func imageDigest() throws -> Int {
    try withImage { db in
      guard let pointer = db.sqliteConnection else { return 0 }
      return try SQLConnection(borrowing: pointer).digest()
    }
  }

  /// The payloads that a kill now would leave.
  func imagePayloads() throws -> Set<[UInt8]> {
    try withImage { db in
      Set(try Data.fetchAll(db, sql: "SELECT payload FROM message").map { [UInt8]($0) })
    }
  }

  private func withImage<Result>(_ body: (Database) throws -> Result) throws -> Result {
    let image = RecordedEngine()
    try copyFiles(to: image)
    let pool = try image.openPool(isRecorded: false)
    defer { try? pool.close() }
    return try pool.writeWithoutTransaction(body)
  }

  /// The visible state of the messages after a restart of the machine, with all delays ended.
  func view() throws -> [String] {
    time.reboot(as: "boot-2")
    time.advance(by: .seconds(10_000))
    var view: [String] = []
    let pool = try openPool(isRecorded: false)
    defer { try? pool.close() }
    let database = try TestQueue(pool: pool, time: time)
    try pool.writeWithoutTransaction { db in
      view += try String.fetchAll(db, sql: "PRAGMA integrity_check")
      view += try Self.rows(db, "SELECT number FROM invoice")
      view += try Self.rows(
        db,
        """
        SELECT channel.name, CAST(payload AS TEXT), priority, ordering_key, length(headers),
          expires IS NULL FROM message JOIN channel ON channel.id = channel_id ORDER BY payload
        """)
      view += try Self.rows(
        db,
        """
        SELECT consumer.name, CAST(payload AS TEXT), reason FROM dead_letter
        JOIN consumer ON consumer.id = consumer_id JOIN message USING (timetoken) ORDER BY consumer.name, payload
        """)
      view += try Self.rows(
        db,
        """
        SELECT name, message_count = (SELECT count(*) FROM message WHERE channel_id = channel.id),
          byte_count = (SELECT ifnull(sum(length(payload) + ifnull(length(headers), 0)), 0)
            FROM message WHERE channel_id = channel.id)
        FROM channel ORDER BY name
        """)
    }
    for (channel, consumer) in [("orders", "default"), ("orders", "audit"), ("events", "default")] {
      view.append(try drain(database, Channel(channel), Consumer(consumer)))
    }
    return view
  }

  /// Everything that a consumer gets; messages with a key in their order.
  private func drain(
    _ database: TestQueue, _ channel: Channel, _ consumer: Consumer
  ) throws -> String {
    var texts: [String] = []
    var keyed: [String] = []
    while true {
      let deliveries = try database.receive(
        from: channel, for: consumer, maximumCount: 100, lease: .seconds(30))
      if deliveries.isEmpty { break }
      for delivery in deliveries {
        let text = String(delivery.text.prefix(12))
        if delivery.orderingKey == nil { texts.append(text) } else { keyed.append(text) }
      }
      try database.acknowledge(deliveries.map(\.token))
    }
    return "\(channel) for \(consumer): \(texts.sorted()), in order: \(keyed)"
  }

  private static func rows(_ db: Database, _ sql: String) throws -> [String] {
    try Row.fetchAll(db, sql: sql).map { row in
      row.map { "\($1)".prefix(40) }.joined(separator: " | ")
    }
  }
}
