import FileRecording
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import SealedSQLite
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct SealedEngineTests {
  let folder = ScratchFolder()
  var path: FilePath { folder("messaging.db") }
  let time = ManualTimeSource()
  let channel = Channel.orders

  /// Runs `body` with an engine's database, and closes its pool.
  private func withDatabase(_ body: (TestQueue, DatabasePool) throws -> Void) throws {
    let key = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
    let pool = try SealedDatabase.openPool(at: path, key: key)
    let result = Result { try body(TestQueue(pool: pool, time: time), pool) }
    try pool.close()
    try result.get()
  }

  @Test func `the engine's operations work on a sealed pool, also after it was closed`() throws {
    let texts = (0..<3000).map { "message \($0)" }
    try withDatabase { database, _ in
      for start in stride(from: 0, to: texts.count, by: 1000) {
        try database.publish(Array(texts[start..<start + 1000]), to: channel)
      }
    }
    try withDatabase { database, _ in
      let deliveries = try database.receive(3000, from: channel)
      #expect(deliveries.map(\.text) == texts)
      try database.acknowledge(deliveries.prefix(1500).map(\.token))
      try database.release(deliveries.suffix(1500).map(\.token))
      #expect(try database.statistics().messageCount == 1500)
      #expect(try database.receive(3000, from: channel).map(\.text) == Array(texts.suffix(1500)))
    }
  }

  @Test func `a sealed database can shrink, and its commits are syncs`() throws {
    try withDatabase { _, pool in
      let settings = try pool.writeWithoutTransaction { db in
        try ["auto_vacuum", "synchronous"].map { try Int.fetchOne(db, sql: "PRAGMA \($0)") }
      }
      #expect(settings == [2, 2])
    }
  }

  @Test func `no file shows a payload or a channel's name`() throws {
    try withDatabase { database, _ in
      try database.publish(["attack at dawn", "attack at noon"], to: Channel("secret-channel"))
      let names = try folder.names()
      #expect(names.contains("messaging.db-wal"))
      for name in names {
        let bytes = try Data(folder.bytes(name))
        for piece in ["attack at", "secret-channel", "CREATE TABLE"] {
          #expect(bytes.range(of: Data(piece.utf8)) == nil, "\(piece) in \(name)")
        }
      }
    }
  }

  @Test func `a damaged page is distinguished from a failing disk`() throws {
    try withDatabase { database, _ in
      try database.publish(
        (0..<200).map { "\($0) " + String(repeating: "x", count: 900) }, to: channel)
    }
    var bytes = try folder.bytes("messaging.db")
    for page in bytes.count / 4096 - 30..<bytes.count / 4096 { bytes[page * 4096 + 100] ^= 1 }
    try folder.file("messaging.db", bytes)
    try withDatabase { database, _ in
      #expect(code { _ = try database.receive(200, from: channel) } == .damaged)
    }
  }
}
