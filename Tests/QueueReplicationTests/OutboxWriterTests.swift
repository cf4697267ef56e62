import DataVault
import FileLayer
import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import TestSupport
import Testing

/// Commands beside the server of a member's home.
@Suite struct OutboxWriterTests {
  private let folder = ScratchFolder()
  private let log = MemoryLog()

  private func replicated<Result>(
    _ body: (MemberHome, MessagingEngine) async throws -> Result
  ) async throws -> Result {
    let home = try await MemberHome(in: folder, "home")
    let alone = try await home.engine()
    try await alone.write {
      try $0.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
    }
    try await alone.stop()
    try await home.provision()
    return try await home.whileReplicating(over: log) { engine, _ in try await body(home, engine) }
  }

  @Test func `a command publishes, and gets the place that the log gives`() async throws {
    try await replicated { home, engine in
      let places = try await home.asCommand { command, _ in
        try await command.publish([Message("one"), Message("two")])
      }
      let stored = try await engine.read {
        try Int64.fetchAll($0, sql: "SELECT timetoken FROM message ORDER BY timetoken")
      }
      #expect(places.map(\.rawValue) == stored && stored.count == 2)
      #expect(try await home.texts(engine) == ["one", "two"])
    }
  }

  @Test func `a command publishes in several parts`() async throws {
    let texts = ["a", "b", "c"].map { String(repeating: $0, count: 600_000) }
    try await replicated { home, engine in
      let places = try await home.asCommand { command, _ in
        try await command.publish(texts.map { Message($0) })
      }
      #expect(places.count == 3)
      #expect(try await home.texts(engine) == texts)
    }
  }

  @Test func `workers settle while a command waits`() async throws {
    try await replicated { home, engine in
      try await engine.publish(Message("one"))
      // Of a command whose record does not come.
      try await engine.write { db in
        try db.execute(
          sql: "INSERT INTO replication_awaited (author, number) VALUES (randomblob(16), 1)")
      }
      let delivery = try await eventually("the message is leased") {
        try await engine.receive(from: .orders, lease: .seconds(4)).first
      }
      try await engine.acknowledge(delivery.token)
      let places = try await home.asCommand { command, _ in
        try await command.publish([Message("two")])
      }
      #expect(places.count == 1)
    }
  }

  @Test func `a command redrives, moves and removes dead letters`() async throws {
    let (channel, failed) = (Channel.orders, try Channel("failed"))
    try await replicated { home, engine in
      let places = try await engine.publish((1...4).map { Message("\($0)") })
      try await engine.addConsumer(.default, of: channel, maximumAttempts: 1)
      try await eventually("all are dead letters") {
        for delivery in try await engine.receive(
          from: channel, maximumCount: 4, lease: .seconds(4))
        {
          try await engine.reject(delivery.token, reason: "no")
        }
        return try await engine.deadLetters(of: channel).count == 4
      }
      try await home.asCommand { command, _ in
        // One of them is no dead letter.
        let missing = Timetoken(unchecked: places[0].rawValue - 1)
        let redriven = try await command.redrive([places[0], missing], of: channel)
        let removed = try await command.removeDeadLetters([places[1]], of: channel)
        let moved = try await command.moveDeadLetters(of: channel, to: failed)
        #expect((redriven, removed, moved) == (1, 1, 2))
      }
      #expect(try await engine.deadLetters(of: channel).isEmpty)
      #expect(
        try await engine.receive(from: channel, lease: .seconds(1)).map(\.timetoken) == [places[0]])
      #expect(try await engine.history(of: failed).count == 2)
      // A command that was killed after it had published is run again: the log drops what comes twice.
      let ids = try await engine.read { db in
        try String.fetchAll(db, sql: "SELECT id FROM deduplication ORDER BY id")
      }
      #expect(ids.map { $0.hasPrefix("moved/") } == [true, true])
    }
  }

  @Test func `a command changes consumers, retention and messages`() async throws {
    let channel = Channel.orders
    let consumer = try Consumer("billing")
    try await replicated { home, engine in
      let places = try await engine.publish((1...5).map { Message("\($0)") })
      try await home.asCommand { command, _ in
        try await command.addConsumer(consumer, of: channel, maximumAttempts: 7)
        var retention = try await command.retention(of: channel)
        retention.maximumMessageCount = 9
        try await command.setRetention(retention, of: channel)
        #expect(try await command.cancel([places[4]], of: channel).isEmpty)
        #expect(try await command.cancel([places[4]], of: channel) == [places[4]])
        #expect(try await command.purge(channel, before: places[2]) == 2)
      }
      #expect(try await engine.retention(of: channel).maximumMessageCount == 9)
      #expect(try await engine.history(of: channel).map(\.timetoken) == [places[2], places[3]])
      try await home.asCommand { command, _ in
        let isRemoved = try await command.removeConsumer(consumer, of: channel)
        let isRemovedAgain = try await command.removeConsumer(consumer, of: channel)
        #expect(isRemoved && !isRemovedAgain)
      }
    }
  }

  @Test func `a command leases nothing`() async throws {
    try await replicated { home, engine in
      try await engine.publish(Message("one"))
      let error = await #expect(throws: EngineError.self) {
        try await home.asCommand { command, _ in
          try await command.receive(from: .orders)
        }
      }
      #expect(error?.code == .replicated && error?.hint?.contains("client") == true)
    }
  }

  @Test func `a command changes rows through the outbox, and learns of a conflict`() async throws {
    try await replicated { home, engine in
      try await home.asCommand { command, writer in
        let rows = try await command.read { db in try Self.inserted(1, "a", db) }
        try await writer.change(rows)
        #expect(
          try await engine.read { try String.fetchAll($0, sql: "SELECT text FROM note") } == ["a"])
        let error = await #expect(throws: EngineError.self) { try await writer.change(rows) }
        #expect(error?.code == .busy)
      }
    }
  }

  @Test func `a command is told when nothing knows what its change came to`() async throws {
    try await replicated { home, engine in
      log.setDown(true)
      let publishing = Task {
        try await home.asCommand { command, _ in try await command.publish(Message("one")) }
      }
      // As another start of the server does.
      try await eventually("the command waits") {
        try await engine.write { db in
          try db.execute(sql: "DELETE FROM replication_awaited")
          return db.changesCount == 1
        }
      }
      let error = await #expect(throws: EngineError.self) { try await publishing.value }
      #expect(error?.code == .outcomeUnknown && error?.message.contains("started again") == true)
      log.setDown(false)
      try await eventually("it is published") { try await home.texts(engine) == ["one"] }
    }
  }

  @Test func `a command changes nothing before the server has drawn its authors`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    let engine = try await home.engine()
    let error = await #expect(throws: EngineError.self) {
      _ = try await MemberNode.start(
        engine, of: home.home, vault: home.vault, configuration: TestShard.configuration,
        time: SystemTimeSource()
      ) { _, _ in
        _ = try await home.asCommand { command, _ in try await command.publish(Message("one")) }
        throw CancellationError()
      }
    }
    #expect(error?.code == .replicated && error?.hint?.contains("serve") == true)
    try await engine.stop()
  }

  @Test func `a command changes nothing while no server replicates the home`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    func expectRefused() async throws {
      let error = await #expect(throws: EngineError.self) {
        try await home.asCommand { _, writer in try await writer.switchKey(to: 1) }
      }
      #expect(error?.code == .replicated && error?.hint?.contains("serve") == true)
    }
    // Before the first server, and after it.
    try await expectRefused()
    try await home.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("one"))
    }
    try await expectRefused()
    let engine = try await home.engine()
    // What the node has written of itself at its end.
    let bodies = try await engine.read { db in
      try Int.fetchOne(db, sql: "SELECT count(*) FROM replication_outbox WHERE key = 1") ?? 0
    }
    #expect(bodies <= 1)
    try await engine.stop()
  }

  /// The changeset of a row that is inserted into a table of the same form.
  private static func inserted(_ id: Int, _ text: String, _ db: Database) throws -> RowChanges {
    let queue = try DatabaseQueue()
    return try queue.write { db in
      try db.execute(sql: "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)")
      let recorder = try RowRecorder(db, tables: ["note"])
      try db.execute(sql: "INSERT INTO note VALUES (?, ?)", arguments: [id, text])
      return try recorder.finish()
    }
  }
}
