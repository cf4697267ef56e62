import FileRecording
import GRDB
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

/// One sequence of operations, some of which wait together and share a commit.
struct ModelRun {
  var random: SeededRandom
  var model = QueueModel()
  var tokens: [LeaseToken] = []
  var history: [String] = []
  var published = 0
  /// Whether an operation has made the channel.
  var channelExists = false
  let channel: Channel
  let consumers: [Consumer]
  private let seed: UInt64
  private let engine: PlainEngine
  private let reports: Reports
  private var bootCount = 1
  private var configuration = EngineConfiguration()
  private var queue: TestQueue

  init(seed: UInt64, _ reports: Reports) throws {
    self.seed = seed
    self.reports = reports
    random = SeededRandom(seed: seed)
    configuration.deduplicationWindow = .seconds(QueueModel.window)
    engine = try PlainEngine(configuration: configuration)
    queue = engine.database
    channel = try Channel("orders")
    consumers = [.default, try Consumer("audit")]
    try engine.pool.writeWithoutTransaction { db in
      try db.execute(sql: ModelOperation.refusal)
    }
    try start()
  }

  /// Starts an engine without syncs.
  private mutating func start() throws {
    let reports = reports
    queue = try TestQueue(
      pool: engine.pool, time: engine.time, configuration: configuration
    ) { reports.append($0) }
    try engine.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = OFF") }
  }

  mutating func step() throws -> Bool {
    switch Int.random(in: 0..<160, using: &random) {
    case 0..<8: advance(Int.random(in: 1..<15, using: &random))
    case 8: try reboot()
    case 9..<30:
      let count = Int.random(in: 2..<7, using: &random)
      return try perform((0..<count).map { _ in try planOperation() })
    default: return try perform([try planOperation()])
    }
    return true
  }

  /// Runs operations, several together, and asks the model in the same order.
  private mutating func perform(_ operations: [ModelOperation]) throws -> Bool {
    let results =
      try operations.count == 1
      ? operations.map { operation in Result { try queue.wait(operation.work) } }
      : queue.together(operations.map(\.work))
    if operations.count > 1 { history.append("\(operations.count) together:") }
    for (operation, result) in zip(operations, results) {
      guard try operation.compare(&self, result) else { return false }
    }
    return true
  }

  private mutating func advance(_ seconds: Int) {
    engine.time.advance(by: .seconds(seconds))
    model.now += seconds
    history.append("now \(model.now)")
  }

  private mutating func reboot() throws {
    bootCount += 1
    engine.time.reboot(as: "boot-\(bootCount)")
    try start()
    model.endHolds()
    history.append("reboot")
  }

  /// At the end every message is received and acknowledged, except for dead letters.
  mutating func finish() throws -> Bool {
    try engine.pool.writeWithoutTransaction { try $0.execute(sql: "DROP TRIGGER refusal") }
    let faults = try engine.pool.read { db in try MessageVerifier.run(db).faults }
    guard check(faults.map { "\($0.rule): \($0.locations)" }, []) else { return false }
    advance(60)
    for consumer in consumers where channelExists {
      for _ in 0..<10_000 {
        let expected = model.receive(consumer, count: 5, lease: 30)
        let deliveries = try queue.receive(
          from: channel, for: consumer, maximumCount: 5, lease: .seconds(30))
        guard check(deliveries.map(\.text), expected.map(\.entry.text)) else { return false }
        if deliveries.isEmpty { break }
        try queue.acknowledge(deliveries.map(\.token))
        for delivery in deliveries {
          model.readers[consumer]?.records[delivery.timetoken]?.phase = .done
        }
        model.forget()
      }
    }
    for consumer in consumers {
      let dead = try engine.pool.read { db in
        try queue.engine.tables.deadLetters(
          of: channel, for: consumer, after: nil, maximumCount: 100_000, in: db)
      }
      let texts = dead.map { String(decoding: $0.payload, as: UTF8.self) }
      guard check(texts, model.deadLetters(consumer)) else { return false }
    }
    let statistics = try queue.statistics()
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

  func check(_ found: [String], _ expected: [String]) -> Bool {
    #expect(found == expected, "seed \(seed): \(history.suffix(400).joined(separator: "\n"))")
    return found == expected
  }
}
