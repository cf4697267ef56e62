import DataVault
import FileRecording
import Foundation
import MessagingQueue
import SealedVFS
import SystemPackage
import Testing
import VaultedDatabase

/// The results of verify and salvage for a database that is behind its vault.
@Suite struct RollbackSalvageTests {
  private let place = EngineHome()

  /// A vault, and with it the database from before the last publication.
  private func rolledBack(policy: VaultPolicy = VaultPolicy()) async throws -> Vault {
    let vault = try await place.makeVault(policy: policy)
    try await place.publish(1...100, vault)
    let older = try place.databaseFiles()
    try await place.publish(101...120, vault)
    try place.replaceDatabase(older)
    return vault
  }

  @Test func `an engine publishes nothing after another file took the database's place`()
    async throws
  {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    try await engine.publish(Message(channel: .orders, payload: [1]))
    // As rsync and a restore from a backup replace a file: by a rename.
    let (database, copy) = (place.home.databasePath.string, place.home.path.string + "/copy")
    try FileManager.default.copyItem(atPath: database, toPath: copy)
    #expect(rename(copy, database) == 0)
    let vaultFile = try place.vaultFile
    await #expect {
      try await engine.publish(Message(channel: .orders, payload: [2]))
    } throws: { "\($0)".contains("the database was replaced while it was open") }
    try? await engine.stop()
    #expect(try place.vaultFile == vaultFile, "an anchor of the replaced database")
    let next = try await place.start(vault)
    #expect(try await next.receive(from: .orders, maximumCount: 9).map(\.payload) == [[1]])
    try await next.stop()
    #expect(try await place.verify(vault).isClean)
  }

  @Test func `verify() reports an older copy with intact pages and messages`() async throws {
    let vault = try await rolledBack()
    let before = try place.databaseFiles()
    let verification = try await place.verify(vault)
    #expect(verification.pages.isClean && verification.messages?.isClean == true)
    #expect(verification.isRolledBack && !verification.isClean)
    #expect(try place.databaseFiles()["messaging.db"] == before["messaging.db"])
    guard case .missing(let expected, let found) = verification.anchor else { return }
    #expect(found < expected && found > 0)
  }

  @Test func `verify() does not call an older copy intact because its vault locks`() async throws {
    var policy = VaultPolicy()
    policy.lockTimeoutSeconds = 60
    let vault = try await rolledBack(policy: policy)
    await #expect {
      _ = try await MessagingEngine.verify(place.home, vault: vault) { [place] _ in
        place.time.advance(by: .seconds(60))
      }
    } throws: { ($0 as? EngineError)?.code == .vaultLocked }
  }

  @Test func `a salvage that ends because its vault locks leaves no copy`() async throws {
    var policy = VaultPolicy()
    policy.lockTimeoutSeconds = 60
    let vault = try await place.makeVault(policy: policy)
    try await place.withEngine(vault) { engine in
      for _ in 1...4 {
        try await engine.publish(
          Message(channel: .orders, payload: [UInt8](repeating: 7, count: 1 << 20)))
      }
    }
    func names() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: place.home.path.string).sorted()
    }
    let before = try names()
    await #expect {
      _ = try await MessagingEngine.salvage(place.home, vault: vault) { [place] _ in
        place.time.advance(by: .seconds(60))
      }
    } throws: { ($0 as? EngineError)?.code == .vaultLocked }
    #expect(try names() == before)
  }

  @Test func `salvage() refuses an older copy, unchanged, until it is accepted`()
    async throws
  {
    let vault = try await rolledBack()
    let before = (try place.databaseFiles(), try place.vaultFile)
    let refusal = await #expect(throws: EngineError.self) { try await place.salvage(vault) }
    #expect(refusal?.code == .rolledBack)
    #expect(refusal?.hint?.contains("--accept-rollback") == true)
    #expect(try place.databaseFiles() == before.0)
    #expect(try place.vaultFile == before.1)
    let names = try FileManager.default.contentsOfDirectory(atPath: place.folder.path)
    #expect(!names.contains { $0.contains("salvaged") || $0.contains("damaged") })

    let salvage = try await place.salvage(vault, acceptsRollback: true)
    #expect(salvage.isComplete && salvage.anchor?.isMissing == true)
    #expect(try await place.messageCount(vault) == 100)
    #expect(try await place.verify(vault).isClean)
  }

  @Test func `salvage() accepts a damaged database that has its vault's anchor`() async throws {
    let vault = try await place.makeVault()
    try await place.publish(1...100, vault)
    let page = try #require(try await place.pages(of: "message", vault).dropFirst().first)
    try place.damage([page])
    let salvage = try await place.salvage(vault)
    guard case .known = salvage.anchor else {
      Issue.record("the anchor is \(String(describing: salvage.anchor))")
      return
    }
    #expect(try await place.messageCount(vault) < 100)
  }

  @Test func `salvage() continues without the engine's row and reports the anchor as unreadable`()
    async throws
  {
    let vault = try await place.makeVault()
    try await place.publish(1...100, vault)
    let engine = try #require(try await place.pages(of: "engine", vault).first)
    let older = try place.databaseFiles()
    try await place.publish(101...120, vault)
    try place.replaceDatabase(older)
    try place.damage([engine])
    let salvage = try await place.salvage(vault)
    guard case .unreadable = salvage.anchor else {
      Issue.record("the anchor is \(String(describing: salvage.anchor))")
      return
    }
    #expect(!salvage.isComplete)
    #expect(try await place.messageCount(vault) == 100)
  }

  @Test func `a lost page of the schema is damage, not a rollback`() async throws {
    let vault = try await place.makeVault()
    try await place.publish(1...100, vault)
    let pages = try await place.pages(of: "sqlite_schema", vault)
    #expect(!pages.isEmpty)
    let whole = try place.image
    for page in pages {
      try place.restore(whole)
      try place.damage([page])
      let vault = try await place.unlockedVault()
      let code = await code { _ = try await place.salvage(vault) }
      #expect(code != .rolledBack, "page \(page)")
    }
  }
}
