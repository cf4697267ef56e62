import Foundation
import MessagingQueue
import Testing

/// A log that was damaged after its commits were acknowledged: SQLite opens without its end, and
/// the engine warns.
@Suite struct DiscardedLogTests {
  private let place = EngineHome()

  @Test func `start() leaves a damaged end of the log out and logs a warning`() async throws {
    let engine = try await place.start(try await place.makeVault())
    for text in ["one", "two", "three"] { try await engine.publish([text], to: .orders) }
    try await place.kill(engine)
    var bytes = try Data(contentsOf: place.log)
    bytes[bytes.count - 2000] ^= 1
    try bytes.write(to: place.log)

    let log = RecordingLog()
    let damaged = try await place.start(place.unlockedVault()) { $0.logger = log.logger }
    let texts = try await damaged.receive(from: .orders, maximumCount: 10).map(\.text)
    try await damaged.stop()

    #expect(texts == ["one", "two"])
    #expect(log.messages.contains { $0.contains("torn or damaged") })
  }
}
