import DataVault
import Foundation
import GRDB
import MessagingQueue
import SealedVFS
import Testing
import VaultCrypto
import VaultedDatabase

/// Damage to the file's header and its copies in the log, on the path that production uses.
@Suite struct DamagedHeaderTests {
  let place = EngineHome()

  private func publish(_ count: Int, through engine: MessagingEngine) async throws {
    for start in stride(from: 0, to: count, by: 50) {
      try await engine.publish(
        (start..<min(start + 50, count)).map { index in
          Message(
            channel: .orders, payload: Array("\(index)".utf8) + [UInt8](repeating: 7, count: 300))
        })
    }
  }

  /// A home after a kill: vault, database and a log with commits.
  private func killedHome(messageCount: Int) async throws -> Vault {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    try await publish(messageCount, through: engine)
    try await place.kill(engine)
    return try await place.unlockedVault()
  }

  /// A home after a clean stop.
  private func stoppedHome(messageCount: Int) async throws -> Vault {
    let vault = try await place.makeVault()
    try await place.withEngine(vault) { try await publish(messageCount, through: $0) }
    return vault
  }

  private func change(_ file: URL, _ body: (inout Data) -> Void) throws {
    var bytes = try Data(contentsOf: file)
    body(&bytes)
    try bytes.write(to: file)
  }

  private func startFailure(_ vault: Vault) async -> EngineError? {
    await engineError { try await place.start(vault).stop() }
  }

  @Test
  func `verify() reports a changed file id in the log, and the next checkpoint loses no message`()
    async throws
  {
    let vault = try await killedHome(messageCount: 300)
    let header = try Data(contentsOf: place.database).prefix(16)
    var changed: [Int] = []
    try change(place.log) { bytes in
      for frame in 1...(bytes.count - 32) / 4120 {
        let start = 32 + (frame - 1) * 4120
        guard bytes[start..<start + 4].elementsEqual([0, 0, 0, 1]) else { continue }
        bytes[start + 24 + 9] ^= 1
        changed.append(frame)
      }
    }
    #expect(!changed.isEmpty)
    let found = try await place.verify(vault)
    #expect(found.pages.log.changedHeaderFrames == changed && found.isClean)

    // The checkpoint before another commit, as a commit can write a new copy of page 1 to the log.
    let opened = try await VaultedDatabase.open(place.home, vault: vault)
    _ = try await opened.pool.writeWithoutTransaction { db in try db.checkpoint(.truncate) }
    try opened.close()
    #expect(try Data(contentsOf: place.database).prefix(16) == header)
    try await place.withEngine(vault) { try await publish(50, through: $0) }
    #expect(try await place.messageCount(vault) == 350)
    #expect(try await place.verify(vault).isClean)
  }

  @Test(arguments: [0, 2, 3, 4, 7, 8, 11, 15])
  func `start() reports a damaged header as damage, and salvage() loses no message`(
    byte: Int
  ) async throws {
    let vault = try await stoppedHome(messageCount: 60)
    try change(place.database) { $0[byte] ^= 0x10 }
    let before = try Data(contentsOf: place.database)
    let failure = await startFailure(vault)
    #expect(failure?.code == .damaged, "\(String(describing: failure))")
    #expect(failure?.hint?.contains("datavault queue salvage") == true)
    let found = try await place.verify(vault)
    #expect(found.pages.isHeaderDamaged && found.pages.damagedPageCount == 0 && !found.isClean)
    #expect(try Data(contentsOf: place.database) == before)
    #expect(try await place.salvage(vault).isComplete)
    #expect(try await place.messageCount(vault) == 60)
  }

  @Test(arguments: [0, 1, 16, 4096])
  func `salvage takes the messages of the log beside a database that was cut to nothing`(
    byteCount: Int
  ) async throws {
    let vault = try await killedHome(messageCount: 300)
    try Data(count: byteCount).write(to: place.database)
    let found = try await place.verify(vault)
    #expect(found.pages.isHeaderDamaged && !found.isClean)
    #expect(await startFailure(vault)?.code == .damaged)
    let salvage = try await place.salvage(vault)
    #expect(salvage.messages?.channels.map(\.messageCount) == [300])
    #expect(try await place.messageCount(vault) == 300)
  }

  @Test func `an empty database without a log does not exist for verify()`() async throws {
    let vault = try await stoppedHome(messageCount: 60)
    try Data().write(to: place.database)
    await #expect {
      _ = try await place.verify(vault)
    } throws: { "\($0)".contains("the database does not exist") }
  }

  @Test func `salvage takes the commits that a changed log header hides, and reports them`()
    async throws
  {
    let vault = try await killedHome(messageCount: 300)
    try change(place.log) { bytes in
      var header = Array(bytes.prefix(24))
      header[19] ^= 1
      var sum: (UInt32, UInt32) = (0, 0)
      for offset in stride(from: 0, to: 24, by: 8) {
        let words = [offset, offset + 4].map { start in
          header[start..<start + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        sum.0 &+= words[0] &+ sum.1
        sum.1 &+= words[1] &+ sum.0
      }
      for word in [sum.0, sum.1] {
        header += stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
      }
      bytes.replaceSubrange(0..<32, with: header)
    }
    let found = try await place.verify(vault)
    let other = try #require(found.pages.log.otherGeneration)
    let salvage = try await place.salvage(vault, acceptsRollback: true)
    #expect(salvage.pages?.otherGeneration == other)
    #expect(salvage.isComplete)
    #expect(salvage.messages?.channels.map(\.messageCount) == [300])
    #expect(try await place.messageCount(vault) == 300)
  }

  @Test func `a plain SQLite header is reported as damage while a page opens`() async throws {
    let vault = try await stoppedHome(messageCount: 60)
    try change(place.database) { $0.replaceSubrange(0..<16, with: Data("SQLite format 3\0".utf8)) }
    #expect(await startFailure(vault)?.code == .damaged)
    #expect(try await place.salvage(vault).isComplete)
    #expect(try await place.messageCount(vault) == 60)
  }

  @Test func `one intact page near the end distinguishes damage from another database`()
    async throws
  {
    let vault = try await stoppedHome(messageCount: 1000)
    try change(place.database) { bytes in
      #expect(bytes.count > 80 * 4096)
      for index in 0..<70 * 4096 { bytes[index] = 0xA5 }
    }
    #expect(await startFailure(vault)?.code == .damaged)
    let found = try await place.verify(vault)
    #expect(found.pages.isHeaderDamaged && found.pages.damagedPages.starts(with: 1...70))
  }

  @Test
  func `the header is rebuilt from the pending key after an interrupted change of key`()
    async throws
  {
    let vault = try await stoppedHome(messageCount: 60)
    let before = try place.vaultFile
    try await VaultedDatabase.changeKey(of: place.home, vault: vault)
    // The vault knows both keys, as after step 2; the database is under the pending one.
    let keys = try await vault.databaseKeys()
    try place.setVaultFile(before)
    let interrupted = try await place.unlockedVault()
    try await interrupted.storePendingKey(keys.current.copy())
    try change(place.database) { $0[9] ^= 1 }
    #expect(await startFailure(interrupted)?.code == .damaged)
    #expect(try await place.verify(interrupted).pages.isHeaderDamaged)
    #expect(try await place.salvage(interrupted).isComplete)
    #expect(try await place.messageCount(interrupted) == 60)
  }

  @Test func `another vault's intact database is a mismatch, also beside this vault's log`()
    async throws
  {
    let vault = try await killedHome(messageCount: 300)
    let otherHome = EngineHome()
    let other = try await otherHome.makeVault()
    try await otherHome.start(other).stop()
    let otherBytes = try #require(try otherHome.databaseFiles()["messaging.db"])
    try otherBytes.write(to: place.database)
    let before = try place.databaseFiles()
    #expect(await startFailure(vault)?.code == .databaseMismatch)
    #expect(await code { _ = try await place.salvage(vault) } == .databaseMismatch)
    #expect(try place.databaseFiles() == before)
  }
}
