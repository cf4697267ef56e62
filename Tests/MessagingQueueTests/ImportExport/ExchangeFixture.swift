import Foundation
import GRDB
import MessagingQueue
import SystemPackage

/// Two engines on plain files of their own, and a folder for the file between them.
struct ExchangeFixture {
  let source: PlainEngine
  let target: PlainEngine
  let sourceEngine: MessagingEngine
  let targetEngine: MessagingEngine

  init() async throws {
    source = try PlainEngine()
    target = try PlainEngine()
    sourceEngine = try source.engine(isSecured: false)
    targetEngine = try target.engine(isSecured: false)
  }

  var path: FilePath { FilePath(source.folder.appendingPathComponent("export.ndjson").path) }
  var partial: FilePath { FilePath(path.string + ".partial") }

  func bytes(of path: FilePath? = nil) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: (path ?? self.path).string)))
  }

  func write(_ bytes: some Sequence<UInt8>, to path: FilePath? = nil) throws {
    let path = (path ?? self.path).string
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
  }

  /// A file of a few messages with all kinds of records.
  static func small() async throws -> (ExchangeFixture, [UInt8]) {
    let fixture = try await ExchangeFixture()
    let channel = try Channel("c")
    try await fixture.sourceEngine.addConsumer(.default, of: channel, maximumAttempts: 2)
    for index in 0..<3 {
      var message = Message(channel: channel, payload: Array("payload \(index)".utf8))
      message.headers = ["n": "\(index)"]
      message.deduplicationID = "id \(index)"
      try await fixture.sourceEngine.publish(message)
    }
    let taken = try await fixture.sourceEngine.receive(
      from: channel, maximumCount: 2, lease: .seconds(30))
    try await fixture.sourceEngine.reject([taken[0].token], reason: "no")
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    return (fixture, try fixture.bytes())
  }

  /// A filled source and the export of all its messages.
  static func exported() async throws -> ExchangeFixture {
    let fixture = try await ExchangeFixture()
    try await fixture.fill()
    _ = try await fixture.sourceEngine.exportMessages(to: fixture.path)
    return fixture
  }

  /// Fills the source with every kind of row.
  func fill() async throws {
    let (a, b, kept) = (try Channel("a"), try Channel("b \"quoted\""), try Channel("kept"))
    var retention = Retention()
    retention.keepsAcknowledged = true
    retention.maximumMessageCount = 100
    try await sourceEngine.setRetention(retention, of: kept)
    let (one, two) = (try Consumer("one"), try Consumer("two"))
    try await sourceEngine.addConsumer(one, of: a, maximumAttempts: 3)
    try await sourceEngine.addConsumer(two, of: a, maximumAttempts: nil)
    for index in 0..<24 {
      var message = Message(channel: a, payload: Array("message \(index)\n\u{0}é😀".utf8))
      if index % 3 == 0 { message.orderingKey = "key \(index % 2)" }
      if index % 4 == 1, index % 3 != 0 { message.priority = try Priority(index % 10) }
      if index % 5 == 2 { message.availability = .after(.seconds(60)) }
      if index % 7 == 3 { message.timeToLive = .seconds(7200) }
      if index % 6 == 4 {
        message.headers = ["type": "text/\"plain\"\t", "e\u{301}": "", "größe": "\u{7F}"]
      }
      if index % 8 == 5 { message.payload = [0xFF, 0, UInt8(index)] }
      message.deduplicationID = index % 2 == 0 ? "id \(index)" : nil
      try await sourceEngine.publish(message)
    }
    let first = try await sourceEngine.receive(
      from: a, for: one, maximumCount: 8, lease: .seconds(30))
    try await sourceEngine.acknowledge([first[0].token, first[3].token])
    try await sourceEngine.release([first[1].token], after: .seconds(5), reason: "not yet")
    try await sourceEngine.reject([first[2].token], reason: "never \"ever\"")
    let second = try await sourceEngine.receive(
      from: a, for: two, maximumCount: 3, lease: .seconds(30))
    try await sourceEngine.acknowledge(second.map(\.token))
    try await sourceEngine.publish((0..<5).map { Message(channel: kept, payload: [UInt8($0)]) })
    let log = try await sourceEngine.receive(from: kept, maximumCount: 3, lease: .seconds(30))
    try await sourceEngine.acknowledge(log.map(\.token))
    try await sourceEngine.publish(Message(channel: b, payload: []))
  }

  /// The exported contents of the tables, without row numbers.
  static func dump(_ engine: PlainEngine, withTimetokens: Bool = true) throws -> [String] {
    try engine.pool.read { db in
      var lines: [String] = []
      for sql in dumps {
        for row in try Row.fetchAll(db, sql: sql) {
          let cells = row.map { name, value in
            name == "timetoken" && !withTimetokens ? "" : "\(name)=\(value)"
          }
          lines.append(cells.joined(separator: " "))
        }
      }
      return lines
    }
  }

  /// In a canonical order of the members.
  private static let failures = """
    (SELECT group_concat(value ->> 'attempt' || ' ' || (value ->> 'time') || ' ' || (value ->> 'reason'))
      FROM json_each(failures))
    """

  private static let dumps = [
    """
    SELECT name, message_count, byte_count, keeps_acknowledged, discards_unacknowledged, longest_age,
      most_messages, most_bytes, removed_through FROM channel ORDER BY name
    """,
    """
    SELECT channel.name, timetoken, priority, due, expires, ordering_key, hex(headers), hex(payload)
    FROM message JOIN channel ON channel.id = channel_id ORDER BY timetoken
    """,
    """
    SELECT channel.name AS c, consumer.name, most_attempts FROM consumer
    JOIN channel ON channel.id = channel_id ORDER BY 1, 2
    """,
    """
    SELECT consumer.name, timetoken, priority, ordering_key, attempt_count, lease IS NOT NULL AS leased,
      due, \(failures) FROM delivery JOIN consumer ON consumer.id = consumer_id ORDER BY 1, 2
    """,
    """
    SELECT consumer.name, timetoken, attempt_count, reason, died, \(failures)
    FROM dead_letter JOIN consumer ON consumer.id = consumer_id ORDER BY 1, 2
    """,
    """
    SELECT channel.name, deduplication.id, timetoken, until FROM deduplication
    JOIN channel ON channel.id = channel_id ORDER BY 1, 2
    """,
    // The messages that each consumer still gets from the log.
    """
    SELECT consumer.name, timetoken AS timetoken FROM consumer
    JOIN message USING (channel_id) WHERE timetoken > ifnull((SELECT position.timetoken FROM position
      WHERE consumer_id = consumer.id AND position.priority = message.priority), 0) ORDER BY 1, 2
    """,
  ]

  /// Receives and acknowledges everything for a consumer, after a restart of the machine.
  static func drain(
    _ engine: MessagingEngine, _ channel: String, for consumer: String
  ) async throws -> [[UInt8]] {
    var payloads: [[UInt8]] = []
    while true {
      let page = try await engine.receive(
        from: try Channel(channel), for: try Consumer(consumer), maximumCount: 100,
        lease: .seconds(30))
      if page.isEmpty { return payloads }
      payloads += page.map(\.payload)
      try await engine.acknowledge(page.map(\.token))
    }
  }

  /// The error of an import; nil if it succeeds.
  func importError() async -> EngineError? {
    await engineError { _ = try await targetEngine.importMessages(from: path) }
  }

  /// The code of that error.
  func importCode() async -> EngineError.Code? { await importError()?.code }

  static func faults(_ engine: PlainEngine) throws -> [MessageVerification.Fault] {
    try engine.pool.read { db in try MessageVerifier.run(db).faults }
  }
}
