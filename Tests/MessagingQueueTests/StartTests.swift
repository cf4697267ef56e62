import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import Testing
import VaultedDatabase

@Suite struct StartTests {
  let folder = ScratchFolder()
  let home: DataVaultHome

  init() { home = Self.home(folder("home")) }

  private static func home(_ path: FilePath) -> DataVaultHome {
    DataVaultHome(path, fileSystem: LinuxFileSystem(), vaultParameters: .cheap)
  }

  private func unlockedVault(_ password: String) async throws -> Vault {
    let vault = try await vault()
    try await vault.unlock(with: credentials(password))
    return vault
  }

  private func startCode(
    _ vault: Vault? = nil, _ configuration: EngineConfiguration = EngineConfiguration()
  ) async -> EngineError.Code? {
    await code {
      try await MessagingEngine.start(home, vault: vault, configuration: configuration).stop()
    }
  }

  /// The vault as another process gets it, locked.
  private func vault() async throws -> Vault {
    try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
  }

  /// Starts for the first time, publishes and stops.
  private func publishFirst() async throws {
    let engine = try await MessagingEngine.start(home)
    try await engine.publish(Message(channel: Channel("c"), payload: [1]))
    try await engine.stop()
  }

  @Test func `a first start makes vault and database, and they open again`() async throws {
    try await publishFirst()
    let engine = try await MessagingEngine.start(home)
    #expect(!engine.isSecured)
    #expect(try await engine.receive(from: Channel("c")).map(\.payload) == [[1]])
    try await engine.stop()
  }

  @Test func `a start on an unsecured vault logs one warning, and no payload is ever logged`()
    async throws
  {
    let log = RecordingLog()
    let configuration = EngineConfiguration { $0.logger = log.logger }
    let engine = try await MessagingEngine.start(home, configuration: configuration)
    let channel = try Channel("c")
    try await engine.publish(Message(channel: channel, payload: Array("attack at dawn".utf8)))
    let deliveries = try await engine.receive(from: channel)
    try await engine.acknowledge(deliveries.map(\.token))
    try await engine.stop()
    #expect(log.messages.filter { $0.hasPrefix("warning") }.count == 1)
    #expect(!log.messages.contains { $0.contains("attack") })
  }

  @Test func `a secured vault opens only with its password, and logs no warning`() async throws {
    try await publishFirst()
    try await VaultedDatabase.secure(home, with: credentials("mine alone"))
    #expect(await startCode() == .vaultLocked)
    #expect(try await startCode(vault()) == .vaultLocked)

    let log = RecordingLog()
    let configuration = EngineConfiguration { $0.logger = log.logger }
    let engine = try await MessagingEngine.start(
      home, vault: unlockedVault("mine alone"), configuration: configuration)
    #expect(engine.isSecured)
    #expect(try await engine.receive(from: Channel("c")).count == 1)
    try await engine.stop()
    #expect(log.messages.allSatisfy { !$0.hasPrefix("warning") })
  }

  @Test func `a vault secured before the first start works like a new one`() async throws {
    try await VaultedDatabase.secure(home, with: credentials("mine alone"))
    #expect(await startCode() == .vaultLocked)
    #expect(try await startCode(unlockedVault("mine alone")) == nil)
  }

  @Test func `start() opens a locked, unsecured vault with the standard credentials`()
    async throws
  {
    try await publishFirst()
    #expect(try await startCode(vault()) == nil)
  }

  @Test func `requiresSecuredVault makes and opens no vault under the public password`()
    async throws
  {
    let configuration = EngineConfiguration { $0.requiresSecuredVault = true }
    #expect(await startCode(nil, configuration) == .vaultMissing)
    #expect(!FileManager.default.fileExists(atPath: folder.path("home")))
    try await MessagingEngine.start(home).stop()
    #expect(await startCode(nil, configuration) == .notSecured)
    let standard = try await vault()
    try await standard.unlock(with: .standard)
    #expect(await startCode(standard, configuration) == .notSecured)
    await standard.lock()
    try await VaultedDatabase.secure(home, with: credentials("long secret"))
    #expect(await startCode(nil, configuration) == .vaultLocked)
    #expect(try await startCode(unlockedVault("long secret"), configuration) == nil)
  }

  @Test func `start() refuses a database without its vault and makes no vault`() async throws {
    try await publishFirst()
    try await Vault.delete(.messaging, in: home.store, force: true)
    #expect(await startCode() == .keyMissing)
    #expect(try await !Vault.exists(.messaging, in: home.store))
  }

  @Test func `start() refuses a vault without its database and makes no database`() async throws {
    try await publishFirst()
    try FileManager.default.removeItem(atPath: home.databasePath.string)
    #expect(await startCode() == .databaseMissing)
    #expect(!FileManager.default.fileExists(atPath: home.databasePath.string))
  }

  @Test func `start() refuses the database of another vault`() async throws {
    try await publishFirst()
    let other = Self.home(folder("other"))
    try await MessagingEngine.start(other).stop()
    try FileManager.default.removeItem(atPath: home.databasePath.string)
    try FileManager.default.moveItem(
      atPath: other.databasePath.string, toPath: home.databasePath.string)
    #expect(await startCode() == .databaseMismatch)
  }

  @Test func `engines that start together for the first time share one vault and one database`()
    async throws
  {
    let home = home
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<4 {
        group.addTask {
          let engine = try await MessagingEngine.start(home)
          try await engine.publish(
            Message(channel: Channel("c"), payload: [UInt8(number)]))
          try await engine.stop()
        }
      }
      try await group.waitForAll()
    }
    let engine = try await MessagingEngine.start(home)
    #expect(try await engine.receive(from: Channel("c"), maximumCount: 9).count == 4)
    try await engine.stop()
  }
}
