import MessagingQueue
import ReplicationFixture
import TestSupport

/// What publishers, workers and operators do.
extension NodeSoak {
  /// Publishes at one node, so that its messages have an order.
  func publish(as publisher: Int, _ start: SeededRandom) async throws {
    var random = start
    var number = 0
    while goesOn {
      try await pause(0...60, &random)
      let isWork = !random.oneIn(3)
      let hasIDs = random.oneIn(2)
      let isLocal = random.oneIn(2)
      let count = random.oneIn(30) ? 40 : 1 + random.next(3)
      // Beyond one part of a record.
      let padding = random.oneIn(60) ? String(repeating: "x", count: 300_000) : ""
      let batch = (0..<count).map { _ in
        number += 1
        return message("\(publisher)-\(number)", padding, isWork: isWork, hasID: hasIDs, &random)
      }
      let texts = batch.map { Self.name(String(decoding: $0.payload, as: UTF8.self)) }
      if isWork {
        for (index, message) in batch.enumerated() {
          judge.willPublish(
            texts[index], publisher: publisher, number: number - count + index,
            key: message.orderingKey)
        }
      }
      repeat {
        guard let engine = node(publisher % settings.nodeCount)?.engine else {
          try await pause(5...10, &random)
          continue
        }
        do throws(EngineError) {
          if isLocal { try await engine.post(batch) } else { try await engine.publish(batch) }
        } catch {
          judge.check(error, "publishing")
          // Without ids, it is unknown whether it is there.
          if hasIDs { continue } else { break }
        }
        if isWork { judge.noteAcknowledged(texts) }
        // A repetition has no effect.
        if hasIDs, random.oneIn(8), goesOn { _ = try? await engine.publish(batch) }
        break
      } while goesOn
    }
  }

  private func message(
    _ name: String, _ padding: String, isWork: Bool, hasID: Bool, _ random: inout SeededRandom
  ) -> Message {
    var message = Message(
      channel: isWork ? Self.work : Self.mixed, payload: Array("\(name) \(padding)".utf8))
    if hasID { message.deduplicationID = name }
    if random.oneIn(3) {
      message.orderingKey = "key \(name.prefix { $0 != "-" })"
    } else if random.oneIn(3), let priority = try? Priority(random.next(10)) {
      message.priority = priority
    }
    if !isWork {
      if random.oneIn(4) { message.availability = .after(.milliseconds(random.next(200))) }
      if random.oneIn(4) { message.timeToLive = .milliseconds(1 + random.next(300)) }
      if random.oneIn(4) { message.headers = ["name": name] }
    }
    return message
  }

  /// Receives at one node after the other, and settles there or elsewhere.
  func work(as worker: Int, _ start: SeededRandom) async throws {
    var random = start
    while goesOn {
      try await pause(0...10, &random)
      guard let engine = anyEngine(&random) else { continue }
      let isWork = worker % 2 == 0 || random.oneIn(3)
      let consumer = isWork ? Consumer.default : Self.limited
      let lease = Duration.milliseconds(40 + random.next(150))
      let begun = ContinuousClock.now
      let deliveries: [Delivery]
      do throws(EngineError) {
        deliveries = try await engine.receive(
          from: isWork ? Self.work : Self.mixed, for: consumer, maximumCount: 1 + random.next(4),
          lease: lease, waitingUpTo: .milliseconds(50))
      } catch {
        judge.check(error, "receiving")
        continue
      }
      for delivery in deliveries {
        judge.noteReceived(
          Self.name(delivery.text), for: consumer.name, by: worker, begun: begun,
          until: begun + lease)
      }
      for delivery in deliveries {
        guard let engine = random.oneIn(3) ? anyEngine(&random) : engine else { continue }
        try await settle(delivery, consumer, isWork: isWork, at: engine, &random)
      }
    }
  }

  private func settle(
    _ delivery: Delivery, _ consumer: Consumer, isWork: Bool, at engine: MessagingEngine,
    _ random: inout SeededRandom
  ) async throws {
    let name = Self.name(delivery.text)
    if random.oneIn(3) { try await pause(1...60, &random) }
    if random.oneIn(6) {
      let begun = ContinuousClock.now
      let lease = Duration.milliseconds(50 + random.next(140))
      if (try? await engine.extend(delivery.token, by: lease)) != nil {
        judge.noteExtended(name, for: consumer.name, until: begun + lease)
      }
    }
    do throws(EngineError) {
      switch random.next(10) {
      case 0: break  // Its lease ends.
      case 1:
        judge.willSettle(name, for: consumer.name)
        try await engine.release(delivery.token, countsAttempt: random.oneIn(2))
      case 2:
        judge.willSettle(name, for: consumer.name, delays: true)
        try await engine.release(
          delivery.token, after: .milliseconds(1 + random.next(100)), reason: "later")
      case 3 where !isWork:
        judge.willSettle(name, for: consumer.name)
        try await engine.reject([delivery.token], reason: "no")
      default:
        judge.willSettle(name, for: consumer.name, acknowledges: true)
        if isWork {
          await acknowledge([delivery], at: engine)
          // A repetition has no effect.
          if random.oneIn(5) { _ = try? await engine.acknowledge(delivery.token) }
        } else {
          try await engine.acknowledge(delivery.token)
        }
      }
    } catch { judge.check(error, "settling", expected: .unknownLease) }
  }

  /// Changes the queue, and removes from it in every way.
  func operate(_ start: SeededRandom) async throws {
    var random = start
    while goesOn {
      try await pause(5...40, &random)
      guard let engine = anyEngine(&random) else { continue }
      do throws(EngineError) {
        try await operate(at: engine, &random)
      } catch { judge.check(error, "an operation") }
    }
  }

  private func operate(
    at engine: MessagingEngine, _ random: inout SeededRandom
  ) async throws(EngineError) {
    switch random.next(12) {
    case 0: try await engine.addConsumer(Self.extra, of: Self.mixed, maximumAttempts: 2)
    case 1: _ = try await engine.removeConsumer(Self.extra, of: Self.mixed)
    case 2: _ = try await engine.redrive(of: Self.mixed, for: Self.limited)
    case 3: _ = try await engine.removeDeadLetters(of: Self.mixed, for: Self.limited)
    case 4: _ = try await engine.moveDeadLetters(of: Self.mixed, for: Self.limited, to: Self.other)
    case 5:
      var retention = Retention()
      retention.maximumMessageCount = 5 + random.next(50)
      retention.discardsUnacknowledged = random.oneIn(2)
      retention.keepsAcknowledged = random.oneIn(2)
      try await engine.setRetention(retention, of: Self.mixed)
    case 6: _ = try await engine.purge(Self.mixed)
    case 7, 8:
      let messages = try await engine.history(of: Self.mixed, maximumCount: 20)
      let chosen = messages.map(\.timetoken).filter { _ in random.oneIn(2) }
      if let end = chosen.last, random.oneIn(4) {
        _ = try await engine.purge(Self.mixed, before: end)
      } else {
        _ = try await engine.cancel(chosen, of: Self.mixed)
      }
    default: _ = try await engine.maintain()
    }
  }
}
