import MessagingQueue
import Synchronization
import VaultedDatabase

/// Publishers and receivers on one engine, with retention and some failures.
final class SoakLoad: Sendable {
  static let channelName = "soak"
  static let publisherCount = 4
  private static let receiverCount = 3
  /// Publishers wait while more messages than this are not acknowledged.
  private static let mostUnderWay = 2_000
  private static let keptCount = 20_000
  /// The maximum size of a message in the file, in MiB: up to 800 bytes of payload, and its rows.
  private static let messageSize = 1.0 / 1024

  let account = SoakAccount(publisherCount: publisherCount)
  private let engine: MessagingEngine
  private let channel: Channel
  private let publishers = Mutex<[Task<Void, any Error>]>([])
  private let receivers = Mutex<[Task<Void, any Error>]>([])

  init(home: DataVaultHome) async throws {
    engine = try await MessagingEngine.start(home)
    channel = try Channel(Self.channelName)
    var retention = Retention()
    retention.keepsAcknowledged = true
    retention.maximumMessageCount = Self.keptCount
    try await engine.setRetention(retention, of: channel)
    try await engine.addConsumer(.default, of: channel)
  }

  /// The maximum size of the file, in MiB: the kept messages, and those of two maintenance rounds.
  func mostFileSize(messagesPerSecond rate: Double) -> Double {
    let seconds = 2 * (EngineConfiguration().maintenanceInterval / .seconds(1))
    return (Double(Self.keptCount) + rate * seconds) * Self.messageSize
  }

  func begin() {
    publishers.withLock { tasks in
      tasks = (0..<Self.publisherCount).map { number in
        Task { try await self.publish(as: number) }
      }
    }
    receivers.withLock { tasks in
      tasks = (0..<Self.receiverCount).map { _ in Task { try await self.receive() } }
      tasks.append(Task { try await self.redrive() })
    }
  }

  /// Waits until all published messages are received, and stops the engine.
  ///
  /// - Returns: how many messages were not received.
  func end() async throws -> Int {
    for task in publishers.withLock({ $0 }) {
      task.cancel()
      try await task.value
    }
    let deadline = ContinuousClock.now + .seconds(120)
    while account.underWay > 0, ContinuousClock.now < deadline {
      try await Task.sleep(for: .milliseconds(100))
    }
    for task in receivers.withLock({ $0 }) {
      task.cancel()
      try await task.value
    }
    let lost = account.underWay
    try await engine.stop()
    return lost
  }

  private func publish(as number: Int) async throws {
    var next = 0
    while !Task.isCancelled {
      if account.underWay > Self.mostUnderWay {
        try? await Task.sleep(for: .milliseconds(5))
        continue
      }
      let messages = (0..<Int.random(in: 1...20)).map { offset in
        var message = Message(
          channel: channel,
          payload: SoakPayload(publisher: number, number: next + offset).bytes(
            count: Int.random(in: 100...800)))
        if offset == 0 { message.headers = ["batch": "\(next)"] }
        return message
      }
      let start = ContinuousClock.now
      // Counted before the publish, because a receiver can be faster than its return.
      account.publishing(messages.count)
      do throws(EngineError) {
        try await engine.publish(messages)
      } catch {
        account.notPublished(messages.count)
        if error.code == .cancelled { return }
        throw error
      }
      account.published(in: start.duration(to: .now))
      next += messages.count
    }
  }

  private func receive() async throws {
    while !Task.isCancelled {
      let deliveries: [Delivery]
      do throws(EngineError) {
        deliveries = try await engine.receive(
          from: channel, maximumCount: 50, lease: .seconds(5), waitingUpTo: .milliseconds(500))
      } catch {
        if error.code == .cancelled { return }
        throw error
      }
      try await settle(deliveries)
    }
  }

  /// Acknowledges most deliveries.
  ///
  /// Some are released or rejected, and some keep their lease.
  private func settle(_ deliveries: [Delivery]) async throws {
    var done: [Delivery] = []
    var released: [LeaseToken] = []
    var rejected: [LeaseToken] = []
    for delivery in deliveries {
      account.delivered(delivery)
      switch Int.random(in: 0..<200) {
      case 0..<6: released.append(delivery.token)
      case 6..<9: rejected.append(delivery.token)
      case 9: break
      default: done.append(delivery)
      }
    }
    let acknowledged = done
    account.failing(deliveries.count - done.count)
    let unknown = try await self.unknown { [engine] () throws(EngineError) in
      try await engine.acknowledge(acknowledged.map(\.token))
    }
    account.acknowledged(done.filter { !unknown.contains($0.token) })
    _ = try await self.unknown { [engine, released] () throws(EngineError) in
      try await engine.release(
        released, after: .milliseconds(Int.random(in: 0...300)), reason: "not now")
    }
    _ = try await self.unknown { [engine, rejected] () throws(EngineError) in
      try await engine.reject(rejected, reason: "never")
    }
  }

  /// Settles deliveries and returns the tokens whose leases have ended.
  ///
  /// On a slow machine leases can end before they are settled. Those messages are delivered again.
  private func unknown(
    _ operation: @escaping @Sendable () async throws(EngineError) -> Void
  ) async throws -> Set<LeaseToken> {
    // Received messages are settled even if this task is cancelled.
    let result = await Task { () async -> Result<Set<LeaseToken>, EngineError> in
      do throws(EngineError) {
        try await operation()
        return .success([])
      } catch {
        return error.code == .unknownLease ? .success(Set(error.unknownLeases)) : .failure(error)
      }
    }.value
    return try result.get()
  }

  private func redrive() async throws {
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(2))
      do throws(EngineError) {
        try await engine.redrive(of: channel)
      } catch {
        if error.code == .cancelled { return }
        throw error
      }
    }
  }
}
