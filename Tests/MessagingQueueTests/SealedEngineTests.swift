import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import TestSupport
import Testing

@Suite struct SealedEngineTests {
  private let sealed = RecordedEngine()
  private let channel = Channel.orders

  private func withDatabase(_ body: (TestQueue) throws -> Void) throws {
    try sealed.withDatabase(isRecorded: false, body)
  }

  @Test func `the engine's operations work on a sealed pool, also after it was closed`() throws {
    let texts = (0..<3000).map { "message \($0)" }
    try withDatabase { database in
      for start in stride(from: 0, to: texts.count, by: 1000) {
        try database.publish(Array(texts[start..<start + 1000]), to: channel)
      }
    }
    try withDatabase { database in
      let deliveries = try database.receive(3000, from: channel)
      #expect(deliveries.map(\.text) == texts)
      try database.acknowledge(deliveries.prefix(1500).map(\.token))
      try database.release(deliveries.suffix(1500).map(\.token))
      #expect(try database.statistics().messageCount == 1500)
      #expect(try database.receive(3000, from: channel).map(\.text) == Array(texts.suffix(1500)))
    }
  }

  @Test func `a sealed database can shrink, and its commits are syncs`() throws {
    try withDatabase { database in
      let settings = try database.engine.pool.writeWithoutTransaction { db in
        try ["auto_vacuum", "synchronous"].map { try Int.fetchOne(db, sql: "PRAGMA \($0)") }
      }
      #expect(settings == [2, 2])
    }
  }

  @Test func `no file shows a payload or a channel's name`() throws {
    try withDatabase { database in
      try database.publish(["attack at dawn", "attack at noon"], to: Channel("secret-channel"))
      let names = try sealed.scratch.names()
      #expect(names.contains("messaging.db-wal"))
      for name in names {
        let bytes = try Data(sealed.scratch.bytes(name))
        for piece in ["attack at", "secret-channel", "CREATE TABLE"] {
          #expect(bytes.range(of: Data(piece.utf8)) == nil, "\(piece) in \(name)")
        }
      }
    }
  }

  @Test func `a damaged page is distinguished from a failing disk`() throws {
    try withDatabase { database in
      try database.publish(
        (0..<200).map { "\($0) " + String(repeating: "x", count: 900) }, to: channel)
    }
    var bytes = try sealed.scratch.bytes("messaging.db")
    for page in bytes.count / 4096 - 30..<bytes.count / 4096 { bytes[page * 4096 + 100] ^= 1 }
    try sealed.scratch.file("messaging.db", bytes)
    try withDatabase { database in
      #expect(code { _ = try database.receive(200, from: channel) } == .damaged)
    }
  }
}
