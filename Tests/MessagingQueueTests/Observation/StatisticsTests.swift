import FileRecording
import MessagingQueue
import QueueFixture
import Testing

@Suite struct StatisticsTests {
  private let orders = Channel.orders
  private let plain: PlainEngine
  private var database: TestQueue { plain.database }

  init() throws {
    plain = try PlainEngine()
  }

  private func consumer(
    _ consumer: Consumer = .default
  ) throws -> EngineStatistics.ConsumerStatistics {
    try #require(
      database.statistics().channels.first { $0.channel == orders }?.consumers
        .first { $0.consumer == consumer })
  }

  @Test func `a consumer's oldest message is the oldest that is ready or leased`() throws {
    let first = try database.publish(["a", "b"], to: orders)
    #expect(try database.statistics().channels.first?.oldest == first[0])
    let deliveries = try database.receive(2, from: orders)
    plain.time.advance(by: .seconds(5))
    #expect(try consumer().oldest == first[0])
    #expect(try consumer().oldestAge == .seconds(5))
    try database.acknowledge([deliveries[0].token])
    #expect(try consumer().oldest == first[1])
    // A delayed message does not count as the oldest.
    try database.release([deliveries[1].token], after: .seconds(60))
    #expect(try consumer().oldest == nil)
    #expect(try consumer().oldestAge == nil)
    let third = try database.publish(["c"], to: orders)
    #expect(try consumer().oldest == third[0])
    plain.time.advance(by: .seconds(60))
    #expect(try consumer().oldest == first[1])
  }

  @Test func `a delayed message counts as the oldest after its delay`() throws {
    var message = Message(channel: orders, payload: [1])
    message.availability = .after(.seconds(10))
    let delayed = try database.publish([message])[0]
    let ready = try database.publish(["b"], to: orders)[0]
    try database.addConsumer(.default, of: orders)
    #expect(try consumer().oldest == ready)
    #expect(try consumer().delayedCount == 1)
    plain.time.advance(by: .seconds(10))
    #expect(try consumer().oldest == delayed)
    #expect(try consumer().readyCount == 2)
  }

  @Test func `all priorities count, whatever the consumer's positions`() throws {
    for (number, count) in [(9, 3), (4, 4), (0, 2)] {
      let messages = try (0..<count).map { _ in
        var message = Message(channel: orders, payload: [1])
        message.priority = try Priority(number)
        return message
      }
      _ = try database.publish(messages)
    }
    for received in 1...9 {
      #expect(try database.receive(1, from: orders).count == 1)
      #expect(try consumer().leasedCount == received)
      #expect(try consumer().readyCount == 9 - received)
    }
  }

  /// The count does not depend on how many messages lie before and after the position.
  @Test(arguments: [0, 10, 1_000, 1_300, 2_500, 2_600])
  func `a deep queue is counted correctly from both ends`(received: Int) throws {
    try database.publish((0..<2_600).map { "\($0)" }, to: orders)
    try database.addConsumer(.default, of: orders)
    if received > 0 { #expect(try database.receive(received, from: orders).count == received) }
    #expect(try consumer().readyCount == 2_600 - received)
    #expect(try consumer().leasedCount == received)
  }
}
