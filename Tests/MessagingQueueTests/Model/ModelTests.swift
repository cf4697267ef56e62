import FaultVFS
import FileLayer
import Foundation
import GRDB
import MessagingQueue
import Testing

/// The queue against ``QueueModel``: the same operations at random, the same answers.
///
/// `DATAVAULT_MODEL_STEPS` asks for more of them.
@Suite struct ModelTests {
  private static let stepsEach = 250
  private static let seedCount =
    (Int(ProcessInfo.processInfo.environment["DATAVAULT_MODEL_STEPS"] ?? "") ?? 5_000) / stepsEach

  @Test func `every answer is the model's`() throws {
    var steps = 0
    for seed in 0..<Self.seedCount {
      var run = try ModelRun(seed: UInt64(seed))
      for _ in 0..<Self.stepsEach {
        guard try run.step() else { return }
        steps += 1
      }
      guard try run.finish() else { return }
    }
    print("model: \(steps) steps equal")
    #expect(steps == Self.seedCount * Self.stepsEach)
  }
}

/// One sequence of operations.
private struct ModelRun {
  private var random: SeededDice
  private let seed: UInt64
  private let engine: PlainEngine
  private let channel: Channel
  private let consumers: [Consumer]
  private var model = QueueModel()
  private var tokens: [LeaseToken] = []
  private var history: [String] = []
  private var published = 0
  private var bootCount = 1
  private var configuration = EngineConfiguration()
  private var database: EngineDatabase

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededDice(seed: seed)
    configuration.deduplicationWindow = .seconds(QueueModel.window)
    engine = try PlainEngine(configuration: configuration)
    database = engine.database
    channel = try Channel("orders")
    consumers = [.default, try Consumer("audit")]
    try engine.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = OFF") }
  }

  mutating func step() throws -> Bool {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<6: return try publish()
    case 6..<11: return try receive()
    case 11..<14: return try settle("acknowledge") { try $0.acknowledge($1) }
    case 14: return try settle("release") { try $0.release($1) }
    case 15: return try settle("delay") { try $0.release($1, after: .seconds(7)) }
    case 16: return try settle("reject") { try $0.reject($1, reason: "no") }
    case 17: return try settle("extend") { try $0.extend($1, by: .seconds(20)) }
    case 18: advance(Int.random(in: 1..<15, using: &random))
    default: return try rare()
    }
    return true
  }

  private mutating func publish() throws -> Bool {
    var messages: [Message] = []
    var entries: [QueueModel.Entry] = []
    for _ in 0..<Int.random(in: 1..<4, using: &random) {
      published += 1
      let text = "message \(published)"
      var message = Message(channel: channel, payload: Array(text.utf8))
      var entry = QueueModel.Entry(timetoken: Timetoken("10000000000000000")!, text: text)
      switch Int.random(in: 0..<8, using: &random) {
      case 0:
        entry.priority = Int.random(in: 0..<10, using: &random)
        message.priority = try Priority(entry.priority)
      case 1...3:
        entry.key = ["red", "blue"].randomElement(using: &random)
        message.orderingKey = entry.key
      default: break
      }
      if Int.random(in: 0..<5, using: &random) == 0 {
        let delay = Int.random(in: 1..<20, using: &random)
        entry.due = model.now + delay
        message.availability = .after(.seconds(delay))
      }
      if Int.random(in: 0..<6, using: &random) == 0 {
        let life = Int.random(in: 1..<40, using: &random)
        entry.expires = model.now + life
        message.timeToLive = .seconds(life)
      }
      if Int.random(in: 0..<8, using: &random) == 0 {
        message.deduplicationID = "id \(Int.random(in: 0..<4, using: &random))"
      }
      messages.append(message)
      entries.append(entry)
    }
    let timetokens = try database.publish(messages)
    history.append(
      "publish \(entries.map { "\($0.text) \($0.priority) \($0.key ?? "-") \($0.due) \($0.expires)" })"
    )
    let isRight = zip(messages, zip(entries, timetokens)).map { message, published in
      let (entry, timetoken) = published
      return model.publish(
        QueueModel.Entry(
          timetoken: timetoken, text: entry.text, priority: entry.priority, key: entry.key,
          due: entry.due, expires: entry.expires), id: message.deduplicationID)
    }
    return check(isRight.map { "\($0)" }, isRight.map { _ in "true" })
  }

  private mutating func receive() throws -> Bool {
    let consumer = consumers.randomElement(using: &random) ?? .default
    let count = Int.random(in: 1..<6, using: &random)
    let lease = Int.random(in: 1..<30, using: &random)
    let deliveries = try database.receive(
      from: channel, for: consumer, maximumCount: count, lease: .seconds(lease))
    // A channel that does not exist has no consumers either.
    if published == 0 { return deliveries.isEmpty }
    let expected = model.receive(consumer, count: count, lease: lease)
    for delivery in deliveries {
      model.readers[consumer]?.records[delivery.timetoken]?.token = delivery.token
      tokens.append(delivery.token)
    }
    history.append("receive \(consumer) \(count) for \(lease): \(deliveries.map(\.text))")
    return check(
      deliveries.map { "\($0.text) #\($0.attempt)" },
      expected.map { "\($0.entry.text) #\($0.attempt)" })
  }

  private mutating func settle(
    _ verb: String, _ body: (EngineDatabase, [LeaseToken]) throws -> Void
  ) throws -> Bool {
    guard let token = tokens.randomElement(using: &random) else { return true }
    let failure = code { try body(database, [token]) }
    #expect(failure == nil || failure == .unknownLease, "seed \(seed): \(verb)")
    let settled = failure == nil
    let now = model.now
    let expected = model.settle(token, evenIfOver: verb != "extend") { record, mostAttempts in
      let isLast = record.attempts >= mostAttempts ?? .max
      switch verb {
      case "acknowledge": record.phase = .done
      case "reject": record.phase = .dead
      case "extend": record.phase = .leased(until: now + 20)
      case "delay": record.phase = isLast ? .dead : .released(until: now + 7)
      default: record.phase = isLast ? .dead : .waiting
      }
      if verb != "extend" { record.token = nil }
    }
    history.append("\(verb) \(token.description.prefix(19)): \(settled)")
    return check([settled ? "settled" : "unknown"], [expected ? "settled" : "unknown"])
  }

  private mutating func advance(_ seconds: Int) {
    engine.time.advance(by: .seconds(seconds))
    model.now += seconds
    history.append("now \(model.now)")
  }

  private mutating func rare() throws -> Bool {
    let consumer = consumers.randomElement(using: &random) ?? .default
    switch Int.random(in: 0..<8, using: &random) {
    case 0...1: return try limitAttempts(of: consumer)
    case 2...3:
      let expected = model.redrive(consumer)
      return try count("redrive of \(consumer)", expected) { database, channel, db in
        try database.redrive(nil, of: channel, for: consumer, in: db)
      }
    case 4:
      let expected = model.removeDeadLetters(consumer)
      return try count("removing dead letters of \(consumer)", expected) { database, channel, db in
        try database.removeDeadLetters(nil, of: channel, for: consumer, in: db)
      }
    case 5:
      let end = model.log.randomElement(using: &random)?.timetoken
      let known = Set(model.log.map(\.timetoken.rawValue))
      let expected = model.purge(before: end)
      return try count("purge", expected) { database, channel, db in
        // The engine drops what has expired when it is its turn, the model at once.
        let expired = try Int64.fetchAll(
          db, sql: "SELECT timetoken FROM message WHERE expires IS NOT NULL AND timetoken < ?",
          arguments: [end?.rawValue ?? .max]
        ).filter { !known.contains($0) }
        return try database.purge(channel, before: end, count: 100_000, in: db) - expired.count
      }
    case 6:
      let expected = model.remove(consumer) ? 1 : 0
      return try count("removing \(consumer)", expected) { database, channel, db in
        try database.removeConsumer(consumer, of: channel, in: db) ? 1 : 0
      }
    default:
      bootCount += 1
      engine.time.reboot(as: "boot-\(bootCount)")
      database = try EngineDatabase(
        pool: engine.pool, time: engine.time, configuration: configuration)
      model.endHolds()
      history.append("reboot")
      return true
    }
  }

  private mutating func limitAttempts(of consumer: Consumer) throws -> Bool {
    let most = Int.random(in: 1..<4, using: &random)
    try database.write(during: "test") { db in
      try database.addConsumer(consumer, of: channel, maximumAttempts: most, in: db)
    }
    if model.readers[consumer] == nil { model.readers[consumer] = .init() }
    model.readers[consumer]?.mostAttempts = most
    if published == 0 { published = 1 }
    history.append("most attempts of \(consumer): \(most)")
    return true
  }

  private mutating func count(
    _ verb: String, _ expected: Int, _ body: (EngineDatabase, Channel, Database) throws -> Int
  ) throws -> Bool {
    let count = try database.write(during: "test") { db in try body(database, channel, db) }
    history.append("\(verb): \(count)")
    return check(["\(count)"], ["\(expected)"])
  }

  /// All is received and acknowledged in the end, but what is dead.
  mutating func finish() throws -> Bool {
    let faults = try engine.pool.read { db in try MessageVerifier.run(db).faults }
    guard check(faults.map { "\($0.rule): \($0.places)" }, []) else { return false }
    advance(60)
    for consumer in consumers where published > 0 {
      for _ in 0..<10_000 {
        let expected = model.receive(consumer, count: 5, lease: 30)
        let deliveries = try database.receive(
          from: channel, for: consumer, maximumCount: 5, lease: .seconds(30))
        guard check(deliveries.map(\.text), expected.map(\.entry.text)) else { return false }
        if deliveries.isEmpty { break }
        try database.acknowledge(deliveries.map(\.token))
        for delivery in deliveries {
          model.readers[consumer]?.records[delivery.timetoken]?.phase = .done
        }
        model.forget()
      }
    }
    for consumer in consumers {
      let dead = try database.write(during: "test") { db in
        try database.deadLetters(
          of: channel, for: consumer, after: nil, maximumCount: 100_000, in: db)
      }
      let texts = dead.map { String(decoding: $0.payload, as: UTF8.self) }
      guard check(texts, model.deadLetters(consumer)) else { return false }
    }
    let statistics = try database.statistics()
    let sums = try engine.pool.read { db in
      try Row.fetchOne(
        db,
        sql: "SELECT count(*), total(length(payload) + ifnull(length(headers), 0)) FROM message")
    }
    return check(
      [
        "\(statistics.messageCount)", "\(sums?[0] as Int? ?? -1)",
        "\(statistics.channels.map(\.byteCount).reduce(0, +))",
      ],
      ["\(model.log.count)", "\(model.log.count)", "\(Int(sums?[1] as Double? ?? -1))"])
  }

  private func check(_ found: [String], _ expected: [String]) -> Bool {
    #expect(found == expected, "seed \(seed): \(history.suffix(400).joined(separator: "\n"))")
    return found == expected
  }
}
