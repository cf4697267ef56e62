import MessagingQueue
import Testing
import VaultCrypto

@Suite struct EngineTests {
  @Test func `a stopped engine refuses every operation`() async throws {
    let plain = try PlainEngine()
    let channel = try Channel("orders")
    let engine = try MessagingEngine(
      pool: plain.pool, time: plain.time, random: .system, isSecured: true)
    try await engine.publish(Message(channel: channel, payload: [1]))
    try await engine.stop()
    await #expect(throws: EngineError.self) {
      try await engine.publish(Message(channel: channel, payload: [2]))
    }
    await #expect(throws: EngineError.self) { _ = try await engine.receive(from: channel) }
    #expect(try plain.database.receive(9, from: channel).map(\.payload) == [[1]])
  }
}
