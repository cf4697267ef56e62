import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import Testing
import VaultCrypto
import VaultedDatabase

/// Engines in a process for which the kernel refuses keys.
@Suite struct EngineSocketTests {
  /// A keyring that refuses every call, as in a container.
  private struct RefusedKeyring: SessionKeyring {
    private static let refusal = KeyringError("add_key", .notPermitted)

    func store(
      _ payload: borrowing SecretBytes, as name: String, wholeSeconds: UInt32
    ) throws(KeyringError) { throw Self.refusal }
    func find(_ name: String) throws(KeyringError) -> KeyringEntry { throw Self.refusal }
    func read(_ serial: Int32, byteCount: Int) throws(KeyringError) -> SecretBytes? {
      throw Self.refusal
    }
    func revoke(_ serial: Int32) throws(KeyringError) { throw Self.refusal }
    func serials(withPrefix prefix: String) throws(KeyringError) -> [Int32] { throw Self.refusal }
  }

  private let scratch = ScratchFolder()
  private let home: DataVaultHome
  /// The parameters of the command, which is another process.
  private let command: VaultParameters

  init() {
    func process() -> VaultParameters {
      var parameters = VaultParameters.cheap
      parameters.sessionKeyring = RefusedKeyring()
      parameters.processKeyring = ProcessKeyring()
      parameters.socketTimeLimit = .seconds(600)
      return parameters
    }
    home = DataVaultHome(
      scratch("home"), fileSystem: LinuxFileSystem(), vaultParameters: process())
    command = process()
  }

  private func makeVault() async throws -> Vault {
    try await Vault.create(
      .messaging, in: home.store, credentials: credentials("long secret"), parameters: command)
  }

  private func areServing() async throws -> [Bool] {
    try await SessionProcess.survey(.messaging, in: home.store, parameters: command).processes
      .map(\.isServing)
  }

  private func socketCount() -> Int {
    let path = home.path.appending("run").string
    return (try? FileManager.default.contentsOfDirectory(atPath: path))?.count ?? 0
  }

  @Test func `an engine that waits starts by the socket, and its lock removes the socket`()
    async throws
  {
    let vault = try await makeVault()
    let configuration = EngineConfiguration { $0.unlockTimeout = .seconds(900) }
    async let starting = MessagingEngine.start(home, configuration: configuration)
    try await eventually { try await areServing() == [false] }
    try await vault.openSession(for: .seconds(3600))
    let engine = try await starting
    #expect(try await areServing() == [true])
    try await engine.publish(Message(channel: Channel("c"), payload: [1]))

    #expect(
      try await VaultSession.end(.messaging, in: home.store, parameters: command).count == 1)
    for await state in engine.states where state == .refused(.vaultLocked) { break }
    #expect(socketCount() == 0)
    #expect(
      await code { try await engine.publish(Message(channel: Channel("c"), payload: [1])) }
        == .vaultLocked)
  }

  @Test func `an engine that finds a stale session waits for another one`() async throws {
    let vault = try await makeVault()
    let file = home.path.appending("vaults/messaging.vault").string
    let before = try Data(contentsOf: URL(fileURLWithPath: file))
    var kept = VaultSecrets()
    kept.append(.password(credentials("long secret")))
    try await vault.rotate(keeping: kept)
    let after = try Data(contentsOf: URL(fileURLWithPath: file))
    // The session begins with the old keys, and a backup brings the new ones.
    let socket = try SessionListener(for: home.store, parameters: home.vaultParameters) { _ in }
    try before.write(to: URL(fileURLWithPath: file))
    let old = try await Vault.get(.messaging, in: home.store, parameters: command)
    try await old.unlock(with: credentials("long secret"))
    try await old.openSession(for: .seconds(3600))
    try after.write(to: URL(fileURLWithPath: file))

    let log = RecordingLog()
    let configuration = EngineConfiguration {
      $0.unlockTimeout = .seconds(900)
      $0.logger = log.logger
    }
    async let starting = MessagingEngine.start(home, configuration: configuration)
    try await eventually { log.messages.contains { $0.contains("has new keys") } }
    let new = try await Vault.get(.messaging, in: home.store, parameters: command)
    try await new.unlock(with: credentials("long secret"))
    try await new.openSession(for: .seconds(3600))
    try await starting.stop()
    withExtendedLifetime(vault) { socket?.close() }
  }

  @Test func `stop() removes the socket, and a start without unlockTimeout makes none`()
    async throws
  {
    let vault = try await makeVault()
    let configuration = EngineConfiguration { $0.unlockTimeout = .seconds(1) }
    let waiting = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    #expect(socketCount() == 1)
    try await waiting.stop()
    #expect(socketCount() == 0)
    let other = try await MessagingEngine.start(home, vault: vault)
    #expect(socketCount() == 0)
    try await other.stop()
  }

  @Test func `an engine whose directory of sockets is refused works, with a warning`() async throws
  {
    let vault = try await makeVault()
    symlink("/tmp", home.path.appending("run").string)
    let log = RecordingLog()
    let configuration = EngineConfiguration {
      $0.unlockTimeout = .seconds(1)
      $0.logger = log.logger
    }
    let engine = try await MessagingEngine.start(home, vault: vault, configuration: configuration)
    try await engine.publish(Message(channel: Channel("c"), payload: [1]))
    try await engine.stop()
    #expect(log.messages.contains { $0.contains("without a session socket") })
  }
}
