import DataVault
import Foundation
import MessagingQueue
import TestSupport
import Testing
import VaultedDatabase

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

  @Test func `acceptRollback() reports a damaged end of the log`() async throws {
    let vault = try await place.makeVault()
    try await place.publish(1...1, vault)
    let anchor = try await vault.anchor()
    let engine = try await place.start(vault) { $0.anchorCommitCount = 1 }
    try await engine.publish(["two"], to: .orders)
    try await eventually { try await vault.anchor() != anchor }
    try await place.kill(engine)
    var bytes = try Data(contentsOf: place.log)
    bytes[2000] ^= 1
    try bytes.write(to: place.log)
    let accepted = try await MessagingEngine.acceptRollback(
      place.home, vault: place.unlockedVault())
    #expect(try #require(accepted).discardedLogFrameCount > 0)
  }
}
