import FileRecording
import GRDB
import MessagingQueue
import TestSupport

extension FaultScenario {
  /// Runs every kind of operation.
  func run() async throws {
    let (engine, time) = (engine, disk.time)
    let orders = Channel.orders
    let events = try Channel("events")
    let audit = try Consumer("audit")
    try await step("adding a consumer") {
      try await engine.addConsumer(audit, of: orders, maximumAttempts: 9)
    }
    try await step("setting a retention") {
      var retention = Retention()
      retention.keepsAcknowledged = true
      retention.maximumMessageCount = 12
      try await engine.setRetention(retention, of: events)
    }
    try await publishTogether()
    let timetokens = try await step("publishing a batch") {
      try await engine.publish((0..<20).map { Self.message("event \($0)", to: events, size: 1000) })
    }
    try await step("publishing with rows of the caller's") {
      try await engine.write { db in
        try db.execute(sql: "INSERT OR IGNORE INTO invoice VALUES (17)")
        try engine.publish(Self.message("invoice", to: orders), in: db)
      }
    }
    try await settle(orders, audit)
    try await step("publishing for later") {
      var message = Self.message("later", to: orders)
      message.availability = .after(.seconds(500))
      message.timeToLive = .seconds(1_000_000)
      try await engine.publish(message)
    }
    let held = try await step("receiving events") {
      time.advance(by: .seconds(60))
      return try await engine.receive(from: events, maximumCount: 15)
    }
    try await step("acknowledging many", known: ()) {
      try await engine.acknowledge(held.map(\.token))
    }
    _ = try await step("a round of maintenance", .several) { try await engine.maintain() }
    _ = try await step("purging", .several) {
      try await engine.purge(events, before: timetokens[16])
    }
    _ = try await step("compacting", .several) { try await engine.compact() }
    try await read(orders)
  }

  static func message(_ text: String, to channel: Channel, size: Int = 0) -> Message {
    let padding = String(repeating: ".", count: max(0, size - text.utf8.count))
    var message = Message(channel: channel, payload: Array((text + padding).utf8))
    message.deduplicationID = text
    return message
  }

  /// Three publishers whose operations share a commit; one that fails tries again alone.
  private func publishTogether() async throws {
    var keyed = ["first", "second"].map { Self.message($0, to: .orders) }
    for index in keyed.indices { keyed[index].orderingKey = "key" }
    _ = try await step("publishing with a key") { [engine, keyed] in try await engine.publish(keyed)
    }
    var waiting = ["third", "fourth", "urgent"].map { Self.message($0, to: .orders) }
    waiting[0].headers = ["name": "value"]
    waiting[2].priority = try Priority(9)
    try await step("publishing together", .several) { [engine, pool, disk] in
      let gate = WriterGate(pool)
      var publishers: [Task<EngineError?, Never>] = []
      for message in waiting {
        publishers.append(Task { await engineError { try await engine.publish(message) } })
        try await eventually { engine.waitingCount >= publishers.count }
      }
      gate.open()
      var refused: [(message: Message, error: EngineError)] = []
      for (message, publisher) in zip(waiting, publishers) {
        if let error = await publisher.value { refused.append((message, error)) }
      }
      guard let first = refused.first else { return }
      let image = try disk.imagePayloads()
      for (message, error) in refused
      where error.code != .outcomeUnknown && image.contains(message.payload) {
        find("publishing together: told \(error.code), but the message is stored")
      }
      waiting = refused.map(\.message)
      throw first.error
    }
  }

  private func settle(_ orders: Channel, _ audit: Consumer) async throws {
    let (engine, time) = (engine, disk.time)
    let held = try await step("receiving") {
      // Leases of an earlier attempt with an unknown outcome have ended.
      time.advance(by: .seconds(60))
      return try await engine.receive(from: orders, maximumCount: 3)
    }
    if held.prefix(2).map(\.text) != ["urgent", "first"] { find("received \(held.map(\.text))") }
    try await step("extending", known: ()) {
      try await engine.extend(held.map(\.token), by: .seconds(40))
    }
    try await step("acknowledging", known: ()) { try await engine.acknowledge([held[0].token]) }
    try await step("releasing", known: ()) {
      try await engine.release([held[1].token], after: .seconds(10), reason: "not now")
    }
    let audited = try await step("receiving for another consumer") {
      time.advance(by: .seconds(60))
      return try await engine.receive(from: orders, for: audit, maximumCount: 4)
    }
    try await step("rejecting", known: ()) {
      try await engine.reject(audited.prefix(2).map(\.token), reason: "never")
    }
    try await step("acknowledging with rows of the caller's", known: ()) {
      try await engine.write { db in
        try db.execute(sql: "INSERT OR IGNORE INTO invoice VALUES (18)")
        try engine.acknowledge(audited.dropFirst(2).map(\.token), in: db)
      }
    }
    _ = try await step("redriving") {
      try await engine.redrive([audited[0].timetoken], of: orders, for: audit)
    }
  }

  /// A failed read changes nothing.
  private func read(_ orders: Channel) async throws {
    let engine = engine
    let texts = try await step("reading the log") {
      try await engine.history(of: orders).map(\.text)
    }
    // Messages of publishers that tried again come after the others.
    if texts.sorted() != ["first", "fourth", "invoice", "later", "second", "third", "urgent"] {
      find("the log has \(texts)")
    }
    let count = try await step("counting") { try await engine.statistics().messageCount }
    if count != 7 + 4 { find("\(count) messages are counted") }
  }
}
