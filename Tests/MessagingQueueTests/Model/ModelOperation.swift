import GRDB
import MessagingQueue

/// An operation of ``ModelRun``: the engine's part, and the comparison with the model.
struct ModelOperation {
  enum Answer: Sendable {
    case timetokens([Timetoken])
    case deliveries([Delivery])
    case count(Int)
    case nothing
  }

  let work: @Sendable (MessagingEngine) async throws -> Answer
  /// Compares the answer with the model's.
  let compare: (inout ModelRun, Result<Answer, any Error>) throws -> Bool

  /// Makes a message fail inside a transaction that others share.
  static let refusal = """
    CREATE TRIGGER refusal BEFORE INSERT ON message WHEN NEW.payload = CAST('refused' AS BLOB)
    BEGIN SELECT RAISE(ABORT, 'no'); END
    """

  /// An operation whose answer is a count.
  fileprivate static func count(
    _ name: String, _ expected: @escaping (inout ModelRun) -> Int,
    _ work: @escaping @Sendable (MessagingEngine) async throws -> Int
  ) -> ModelOperation {
    ModelOperation(work: { .count(try await work($0)) }) { run, result in
      guard case .count(let count) = try result.get() else { return false }
      run.history.append("\(name): \(count)")
      return run.check(["\(count)"], ["\(expected(&run))"])
    }
  }
}

extension ModelRun {
  mutating func planOperation() throws -> ModelOperation {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<5: return try publish()
    case 5..<10: return receive()
    case 10..<13: return try settle("acknowledge") { try await $0.acknowledge([$1]) }
    case 13:
      return try settle("release") { try await $0.release([$1], after: .zero, reason: nil) }
    case 14:
      return try settle("delay") { try await $0.release([$1], after: .seconds(7), reason: nil) }
    case 15: return try settle("reject") { try await $0.reject([$1], reason: "no") }
    case 16: return try settle("extend") { try await $0.extend([$1], by: .seconds(20)) }
    case 17...18: return fail()
    default: return rare()
    }
  }

  private mutating func publish() throws -> ModelOperation {
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
      message.deduplicationID = deduplicationID()
      messages.append(message)
      entries.append(entry)
    }
    return ModelOperation(work: { [messages] in .timetokens(try await $0.publish(messages)) }) {
      [messages, entries] run, result in
      guard case .timetokens(let timetokens) = try result.get() else { return false }
      run.channelExists = true
      run.history.append(
        "publish \(entries.map { "\($0.text) \($0.priority) \($0.key ?? "-") \($0.due) \($0.expires)" })"
      )
      let isRight = zip(messages, zip(entries, timetokens)).map { message, published in
        let (entry, timetoken) = published
        return run.model.publish(
          QueueModel.Entry(
            timetoken: timetoken, text: entry.text, priority: entry.priority, key: entry.key,
            due: entry.due, expires: entry.expires), id: message.deduplicationID)
      }
      return run.check(isRight.map { "\($0)" }, messages.map { _ in "true" })
    }
  }

  private mutating func deduplicationID() -> String? {
    Int.random(in: 0..<8, using: &random) == 0
      ? "id \(Int.random(in: 0..<4, using: &random))" : nil
  }

  private mutating func receive() -> ModelOperation {
    let channel = channel
    let consumer = consumers.randomElement(using: &random) ?? .default
    let count = Int.random(in: 1..<6, using: &random)
    let lease = Int.random(in: 1..<30, using: &random)
    return ModelOperation(work: { engine in
      .deliveries(
        try await engine.receive(
          from: channel, for: consumer, maximumCount: count, lease: .seconds(lease)))
    }) { run, result in
      guard case .deliveries(let deliveries) = try result.get() else { return false }
      run.channelExists = true  // a receive makes it
      let expected = run.model.receive(consumer, count: count, lease: lease)
      for delivery in deliveries {
        run.model.readers[consumer]?.records[delivery.timetoken]?.token = delivery.token
        run.tokens.append(delivery.token)
      }
      run.history.append("receive \(consumer) \(count) for \(lease): \(deliveries.map(\.text))")
      return run.check(
        deliveries.map { "\($0.text) #\($0.attempt)" },
        expected.map { "\($0.entry.text) #\($0.attempt)" })
    }
  }

  private mutating func settle(
    _ kind: String,
    _ work: @escaping @Sendable (MessagingEngine, LeaseToken) async throws -> Void
  ) throws -> ModelOperation {
    guard let token = tokens.randomElement(using: &random) else { return try publish() }
    return ModelOperation(work: { engine in
      try await work(engine, token)
      return .nothing
    }) { run, result in
      let failure = code { _ = try result.get() }
      let now = run.model.now
      let isKnown = run.model.settle(token, evenIfOver: kind != "extend") {
        record, maximumAttempts in
        let isLast = record.attempts >= maximumAttempts ?? .max
        switch kind {
        case "acknowledge": record.phase = .done
        case "reject": record.phase = .dead
        case "extend": record.phase = .leased(until: now + 20)
        case "delay": record.phase = isLast ? .dead : .released(until: now + 7)
        default: record.phase = isLast ? .dead : .waiting
        }
        if kind != "extend" { record.token = nil }
      }
      let found = failure?.description ?? "settled"
      run.history.append("\(kind) \(token.description.prefix(19)): \(found)")
      return run.check([found], [isKnown ? "settled" : EngineError.Code.unknownLease.description])
    }
  }

  /// Fails in the transaction: in its first statement, its only one, or after others.
  private mutating func fail() -> ModelOperation {
    let (channel, kind) = (channel, Int.random(in: 0..<3, using: &random))
    let refused = Message(channel: channel, payload: Array("refused".utf8))
    var before = Message(channel: channel, payload: Array("never".utf8))
    before.deduplicationID = deduplicationID()
    return ModelOperation(work: { [before] engine in
      switch kind {
      case 0: try await engine.addConsumer(.default, of: channel, maximumAttempts: 0)
      case 1: _ = try await engine.publish([refused])
      default: _ = try await engine.publish([before, refused])
      }
      return .nothing
    }) { run, result in
      run.history.append("failure \(kind)")
      let failure = code { _ = try result.get() }
      let expected: EngineError.Code = kind == 0 ? .invalidArgument : .damaged
      return run.check([failure?.description ?? "none"], [expected.description])
    }
  }

  private mutating func rare() -> ModelOperation {
    let channel = channel
    let consumer = consumers.randomElement(using: &random) ?? .default
    switch Int.random(in: 0..<7, using: &random) {
    case 0...1:
      let most = Int.random(in: 1..<4, using: &random)
      return ModelOperation(work: { engine in
        try await engine.addConsumer(consumer, of: channel, maximumAttempts: most)
        return .nothing
      }) { run, result in
        _ = try result.get()
        run.model.readers[consumer, default: .init()].maximumAttempts = most
        run.channelExists = true
        run.history.append("most attempts of \(consumer): \(most)")
        return true
      }
    case 2...3:
      return .count("redrive of \(consumer)", { $0.model.redrive(consumer) }) {
        try await $0.redrive(nil, of: channel, for: consumer)
      }
    case 4:
      return .count(
        "removing dead letters of \(consumer)", { $0.model.removeDeadLetters(consumer) }
      ) { try await $0.removeDeadLetters(nil, of: channel, for: consumer) }
    case 5: return purge()
    default:
      return .count("removing \(consumer)", { $0.model.remove(consumer) ? 1 : 0 }) {
        try await $0.removeConsumer(consumer, of: channel) ? 1 : 0
      }
    }
  }

  private mutating func purge() -> ModelOperation {
    let (channel, end) = (channel, model.log.randomElement(using: &random)?.timetoken)
    return ModelOperation(work: { engine in
      let tables = engine.tables
      return .timetokens(
        try await engine.commits.run(during: "purging") { db in
          let found = try Int64.fetchAll(
            db, sql: "SELECT timetoken FROM message WHERE timetoken < ?",
            arguments: [end?.rawValue ?? .max])
          let count = try tables.purge(channel, before: end, count: 100_000, in: db)
          return count == found.count ? found.compactMap { Timetoken("\($0)") } : []
        })
    }) { run, result in
      guard case .timetokens(let timetokens) = try result.get() else { return false }
      // The engine drops an expired message at its turn, the model immediately.
      let known = Set(run.model.log.map(\.timetoken))
      let count = timetokens.count { known.contains($0) }
      run.history.append("purge: \(count)")
      return run.check(["\(count)"], ["\(run.model.purge(before: end))"])
    }
  }
}
