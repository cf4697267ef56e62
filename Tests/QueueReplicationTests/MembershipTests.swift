import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import Replication
import ReplicationFixture
import SystemPackage
import TestSupport
import Testing
import VaultCrypto
import VaultedDatabase

@Suite struct MembershipTests {
  private let folder = ScratchFolder()
  private let log = MemoryLog()

  private var copy: FilePath { FilePath(folder.path("copy.db")) }

  @Test func `a home with messages becomes a cluster, grows, and is one home again`() async throws {
    let first = try await MemberHome(in: folder, "first")
    let second = try await MemberHome(in: folder, "second")
    let alone = try await first.engine()
    try await alone.publish(Message("before"))
    try await alone.stop()
    try await first.provision()

    try await first.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("on one"))
      let request = try await second.request()
      let invitation = try await first.asCommand { [copy] _, writer in
        try await Membership.invite(
          request.bytes, confirmed: request.fingerprint(), by: writer, of: first.home,
          vault: first.vault, sharing: sharedItem, copyingTo: copy)
      }
      try await engine.publish(Message("after the copy"))

      let joining = try await second.engine()
      try await Membership.join(
        invitation.bytes, confirmed: invitation.fingerprint, copy: copy, joining,
        vault: second.vault, sharing: sharedItem)
      let shared = try await second.vault.item(sharedItem).bytes.array()
      #expect(shared == [UInt8](repeating: 7, count: 32))
      let settings = try await NodeVault(second.vault).cluster().settings
      #expect(settings.addresses == ["nats://127.0.0.1:4222"])
      try await joining.stop()

      try await second.whileReplicating(over: log) { other, member in
        try await other.publish(Message("on the other"))
        let all = ["before", "on one", "after the copy", "on the other"]
        try await eventually("both have all") {
          try await [first.texts(engine), second.texts(other)].allSatisfy { $0 == all }
        }
        #expect(try await first.schema(engine) == second.schema(other))
        try await member.node.leave(within: .seconds(10))
      }
    }

    // Each home goes on by itself, with all messages.
    let left = try await second.engine()
    try await MemberNode.leaveAlone(left, of: second.home, vault: second.vault, serverTables: [])
    try await left.stop()
    let second2 = try await second.engine()
    #expect(!second2.isReplicated)
    try await second2.publish(Message("alone again"))
    #expect(try await second.texts(second2).last == "alone again")
    try await second2.stop()
    #expect(try await second.vault.itemNames().allSatisfy { !$0.name.hasPrefix("replication.") })
  }

  @Test func `a home that leaves without brokers keeps what was only in its outbox`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    try await home.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("in the log"))
      log.setDown(true)
      _ = try await engine.post([Message("promised")])
    }
    let engine = try await home.engine()
    try await MemberNode.leaveAlone(engine, of: home.home, vault: home.vault, serverTables: [])
    try await engine.stop()
    let alone = try await home.engine()
    #expect(try await home.texts(alone) == ["in the log", "promised"])
    // As after a kill between the database and the vault.
    _ = try await NodeVault(home.vault).keys()
    try await MemberNode.leaveAlone(alone, of: home.home, vault: home.vault, serverTables: [])
    #expect(try await home.vault.itemNames().allSatisfy { !$0.name.hasPrefix("replication.") })
    try await alone.stop()
  }

  @Test func `a home that leaves without brokers keeps what they have forgotten`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision(syncSeconds: 600)
    var count = 0
    try await home.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("in the log"))
      count = log.count
      try await engine.publish(Message("forgotten"))
    }
    // Another process, whose first record waits for those of the one before it.
    try await home.whileReplicating(over: log) { engine, _ in
      log.setDown(true)
      _ = try await engine.post([Message("promised")])
      log.forget(log.count - count)
      log.setTransmission { _ in [] }
      log.setDown(false)
      try await eventually("it is undone") { try await home.texts(engine) == ["in the log"] }
    }
    let engine = try await home.engine()
    // What waits for the process before it, whose records are not there, is kept, not dropped.
    try await engine.write { db in
      try db.execute(
        sql: """
          CREATE TABLE aside AS SELECT * FROM replication_outbox WHERE author IN (
            SELECT author FROM replication_outbox GROUP BY author HAVING min(number) > 1);
          DELETE FROM replication_outbox WHERE arrival IN (SELECT arrival FROM aside)
          """)
    }
    let error = await #expect(throws: ReplicationError.self) {
      try await MemberNode.leaveAlone(engine, of: home.home, vault: home.vault, serverTables: [])
    }
    #expect(error?.code == .state && error?.hint != nil)
    try await engine.write { db in
      try db.execute(sql: "INSERT INTO replication_outbox SELECT * FROM aside; DROP TABLE aside")
    }
    try await MemberNode.leaveAlone(engine, of: home.home, vault: home.vault, serverTables: [])
    #expect(try await home.texts(engine).sorted() == ["forgotten", "in the log", "promised"])
    try await engine.stop()
  }

  @Test func `a member's home that was salvaged only leaves`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    try await home.whileReplicating(over: log) { engine, _ in
      try await engine.publish(Message("one"))
    }
    let engine = try await home.engine()
    try await engine.write {
      try $0.execute(sql: "CREATE TABLE \(MessageRepairer.memberMark) (id INTEGER)")
    }
    try await engine.stop()
    let error = await #expect(throws: ReplicationError.self) {
      try await home.whileReplicating(over: log) { _, _ in }
    }
    #expect(error?.code == .damaged && error?.hint?.contains("leave") == true)
    let left = try await home.engine()
    try await MemberNode.leaveAlone(left, of: home.home, vault: home.vault, serverTables: [])
    #expect(try await home.texts(left) == ["one"])
    let hasMark = try await left.read { try $0.tableExists(MessageRepairer.memberMark) }
    #expect(!hasMark)
    try await left.stop()
  }

  @Test func `only another member of the cluster can be removed`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    try await home.whileReplicating(over: log) { _, _ in
      let own = try await home.request().member
      try await home.asCommand { _, writer in
        for id in [own, MemberID(77)] {
          let error = await #expect(throws: EngineError.self) { try await writer.removeMember(id) }
          #expect(error?.code == .invalidArgument && error?.hint != nil)
        }
      }
    }
  }

  @Test func `a copy serves its joiner alone, and an empty home alone`() async throws {
    let first = try await MemberHome(in: folder, "first")
    let joiner = try await MemberHome(in: folder, "joiner")
    let other = try await MemberHome(in: folder, "other")
    try await first.provision()
    let invitation = try await first.whileReplicating(over: log) { _, _ in
      let request = try await joiner.request()
      return try await first.asCommand { [copy] _, writer in
        try await Membership.invite(
          request.bytes, confirmed: request.fingerprint(), by: writer, of: first.home,
          vault: first.vault, sharing: sharedItem, copyingTo: copy)
      }
    }
    func join(_ home: MemberHome, _ confirmed: Fingerprint) async throws {
      let engine = try await home.engine()
      do {
        try await Membership.join(
          invitation.bytes, confirmed: confirmed, copy: copy, engine, vault: home.vault,
          sharing: sharedItem)
      } catch {
        try await engine.stop()
        throw error
      }
      try await engine.stop()
    }
    await #expect(throws: (any Error).self) { try await join(other, invitation.fingerprint) }
    let wrong = try #require(Fingerprint("AAAAA-AAAAA-AAAAA-AAAAA-AAAAA"))
    await #expect(throws: (any Error).self) { try await join(joiner, wrong) }
    let used = try await joiner.engine()
    try await used.publish(Message("own"))
    try await used.stop()
    await #expect(throws: ReplicationError.self) { try await join(joiner, invitation.fingerprint) }
    let engine = try await joiner.engine()
    #expect(try await joiner.texts(engine) == ["own"])
    #expect(!engine.isReplicated)
    await #expect(throws: ReplicationError.self) { _ = try await NodeVault(joiner.vault).cluster() }
    try await engine.stop()
  }

  @Test func `all members get a new key, switch to it, and drop the old one`() async throws {
    let first = try await MemberHome(in: folder, "first")
    let second = try await MemberHome(in: folder, "second")
    try await first.provision()
    let request = try await second.request()
    let (bytes, confirmed) = (request.bytes, try request.fingerprint())
    let invitation = try await first.whileReplicating(over: log) { _, _ in
      try await first.asCommand { [copy] _, writer in
        try await Membership.invite(
          bytes, confirmed: confirmed, by: writer, of: first.home, vault: first.vault,
          sharing: sharedItem, copyingTo: copy)
      }
    }
    let joining = try await second.engine()
    try await Membership.join(
      invitation.bytes, confirmed: invitation.fingerprint, copy: copy, joining,
      vault: second.vault, sharing: sharedItem)
    try await joining.stop()

    #expect(try await NodeVault(first.vault).addKey() == 2)
    try await first.whileReplicating(over: log) { engine, _ in
      try await second.whileReplicating(over: log) { _, _ in
        // The second one has not got it.
        let error = await #expect(throws: EngineError.self) {
          try await first.asCommand { _, writer in try await writer.switchKey(to: 2) }
        }
        #expect(error?.code == .invalidArgument)
      }
      let handed = try await Membership.handOn(
        to: bytes, confirmed: confirmed, vault: first.vault, sharing: sharedItem)
      try await Membership.takeKeys(
        of: handed.bytes, confirmed: handed.fingerprint, vault: second.vault)
      try await second.whileReplicating(over: log) { other, _ in
        try await eventually("both have said that they have the key") {
          try await first.asCommand { _, writer in
            (try? await writer.switchKey(to: 2)) != nil
          }
        }
        try await engine.publish(Message("under the new key"))
        #expect(log.records.last { $0.key == 2 } != nil)
        try await eventually("no member needs the old key") {
          try await first.asCommand { _, writer in
            (try? await writer.dropKeys(before: 2)) != nil
          }
        }
        try await eventually("the other one reads it") {
          try await second.texts(other).last == "under the new key"
        }
      }
    }
    try await first.whileReplicating(over: log) { engine, _ in
      #expect(try await NodeVault(first.vault).cluster().ring.keyNumbers == 2...2)
      try await engine.publish(Message("after the drop"))
    }
  }

  @Test func `one process replicates a home`() async throws {
    let home = try await MemberHome(in: folder, "home")
    try await home.provision()
    try await home.whileReplicating(over: log) { _, _ in
      await #expect(throws: ReplicationError.self) {
        _ = try await home.whileReplicating(over: log) { _, _ in true }
      }
    }
  }

  @Test func `settings are read as they were written`() throws {
    var settings = ClusterSettings(
      addresses: ["tls://a:4222", "tls://b:4222"], authority: "PEM \"x\"\n")
    settings.logsIn = false
    settings.syncSeconds = 0
    #expect(try ClusterSettings(parsing: settings.text) == settings)
    for text in [
      "", "{}", "[]", #"{"version":2}"#,
      #"{"version":1,"addresses":[],"login":true,"syncSeconds":1}"#,
    ] {
      #expect(throws: ReplicationError.self) { try ClusterSettings(parsing: Array(text.utf8)) }
    }
  }
}
