import DataVault
import Foundation
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

@testable import MessagingQueue

/// A log that was damaged after its commits were acknowledged: SQLite opens without its end, and
/// the engine warns.
@Suite struct DiscardedLogTests {
  @Test func `start() leaves a damaged end of the log out and logs a warning`() async throws {
    let folder = ScratchFolder()
    let original = folder.url.appendingPathComponent("original")
    let copy = folder.url.appendingPathComponent("copy")
    defer { withExtendedLifetime(folder) {} }
    let home = DataVaultHome(FilePath(original.path))
    let channel = try Channel("c")
    let engine = try await MessagingEngine.start(home)
    for text in ["one", "two", "three"] {
      try await engine.publish(Message(channel: channel, payload: Array(text.utf8)))
    }
    // The files after a kill: the log exists, its index does not.
    try FileManager.default.copyItem(at: original, to: copy)
    try FileManager.default.removeItem(at: copy.appendingPathComponent("messaging.db-shm"))
    try await engine.stop()
    let logFile = copy.appendingPathComponent("messaging.db-wal")
    var bytes = try Data(contentsOf: logFile)
    bytes[bytes.count - 2000] ^= 1
    try bytes.write(to: logFile)

    let log = RecordingLog()
    var configuration = EngineConfiguration()
    configuration.logger = log.logger
    let damaged = try await MessagingEngine.start(
      DataVaultHome(FilePath(copy.path)), configuration: configuration)
    let payloads = try await damaged.receive(from: channel, maximumCount: 10).map(\.payload)
    try await damaged.stop()

    #expect(payloads == [Array("one".utf8), Array("two".utf8)])
    #expect(log.messages.contains { $0.contains("torn or damaged") })
  }
}
