import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import TestSupport
import VaultedDatabase

/// A home in a folder of its own.
///
/// Its vaults are cheap, and its clocks stand still.
final class EngineHome: Sendable {
  private let scratch: ScratchFolder
  var folder: URL { scratch.url }
  let home: DataVaultHome
  let time = ManualTimeSource()

  convenience init() {
    let scratch = ScratchFolder()
    self.init(scratch, FileVaultStore(home: scratch.path, fileSystem: LinuxFileSystem()))
  }

  /// The same home, with its vaults in another store.
  convenience init(in place: EngineHome, store: any VaultStore) {
    self.init(place.scratch, store)
  }

  private init(_ scratch: ScratchFolder, _ store: any VaultStore) {
    self.scratch = scratch
    var parameters = VaultParameters.cheap
    parameters.closingTimeout = .seconds(600)
    parameters.now = { [time] in time.now }
    parameters.sinceBoot = { [time] in time.sinceBoot }
    // Its clocks stand still.
    parameters.sleep = { _ in try await Task.sleep(for: .seconds(3600)) }
    home = DataVaultHome(
      scratch.path, store: store, fileSystem: LinuxFileSystem(),
      vaultParameters: parameters)
  }

  var database: URL { folder.appendingPathComponent("messaging.db") }
  var log: URL { folder.appendingPathComponent("messaging.db-wal") }

  /// The database and its log, with their bytes.
  func databaseFiles() throws -> [String: Data] {
    ["messaging.db": database, "messaging.db-wal": log]
      .compactMapValues { try? Data(contentsOf: $0) }
  }

  func replaceDatabase(_ files: [String: Data]) throws {
    for name in ["messaging.db", "messaging.db-wal", "messaging.db-shm"] {
      try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
    for (name, bytes) in files { try bytes.write(to: folder.appendingPathComponent(name)) }
  }

  /// The vault, the database and its log, with their bytes.
  struct Image {
    let files: [String: Data]
    let vaultFile: Data
  }

  var image: Image { get throws { Image(files: try databaseFiles(), vaultFile: try vaultFile) } }

  /// Puts back an image, without the databases that salvages have kept.
  func restore(_ image: Image) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
    where name.contains(".damaged-") {
      try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
    try replaceDatabase(image.files)
    try setVaultFile(image.vaultFile)
  }

  /// The bytes of the vault on the disk.
  var vaultFile: Data {
    get throws { try Data(contentsOf: folder.appendingPathComponent("vaults/messaging.vault")) }
  }

  func setVaultFile(_ bytes: Data) throws {
    let url = folder.appendingPathComponent("vaults/messaging.vault")
    try bytes.write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
  }

  /// Makes and unlocks the messaging vault.
  func makeVault(policy: VaultPolicy? = nil) async throws -> Vault {
    try await Vault.create(
      .messaging, in: home.store, credentials: Self.credentials, policy: policy,
      parameters: home.vaultParameters)
  }

  /// The same vault, opened as by another process.
  func unlockedVault() async throws -> Vault {
    let vault = try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
    try await vault.unlock(with: Self.credentials)
    return vault
  }

  func start(
    _ vault: Vault, _ change: (inout EngineConfiguration) -> Void = { _ in }
  ) async throws -> MessagingEngine {
    try await MessagingEngine.start(
      home, vault: vault, configuration: EngineConfiguration(change))
  }

  /// Does work with an engine that it starts and stops.
  func withEngine<Result>(
    _ vault: Vault, _ body: (MessagingEngine) async throws -> Result
  ) async throws -> Result {
    let engine = try await start(vault)
    let result = try await body(engine)
    try await engine.stop()
    return result
  }

  /// Publishes a message of 500 bytes for each byte.
  func publish(_ bytes: ClosedRange<UInt8>, _ vault: Vault) async throws {
    try await withEngine(vault) { engine in
      _ = try await engine.publish(
        bytes.map { Message(channel: .orders, payload: [UInt8](repeating: $0, count: 500)) })
    }
  }

  func verify(_ vault: Vault) async throws -> QueueVerification {
    try await MessagingEngine.verify(home, vault: vault)
  }

  func salvage(_ vault: Vault, acceptsRollback: Bool = false) async throws -> QueueSalvage {
    try await MessagingEngine.salvage(home, vault: vault, acceptsRollback: acceptsRollback)
  }

  func messageCount(_ vault: Vault) async throws -> Int {
    try await withEngine(vault) { try await $0.messageCount(of: .orders) }
  }

  /// The leaf pages of a table, according to SQLite.
  func pages(of table: String, _ vault: Vault) async throws -> [Int] {
    try await withEngine(vault) { engine in
      try await engine.read { db in
        try Int.fetchAll(
          db, sql: "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path",
          arguments: [table])
      }
    }
  }

  func damage(_ pages: [Int]) throws {
    var bytes = try Data(contentsOf: database)
    for page in pages { bytes[(page - 1) * 4096 + 100] ^= 1 }
    try bytes.write(to: database)
  }

  /// Stops an engine, and puts back the files that a kill instead would leave.
  func kill(_ engine: MessagingEngine) async throws {
    let image = try image
    try await engine.stop()
    try restore(image)
  }

  static var credentials: Credentials {
    TestSupport.credentials("long secret")
  }
}

extension MessagingEngine {
  /// The state after the stop under way: on a busy machine the timeout of a lock can end before it.
  func settledState() async throws -> EngineState {
    try await eventually { state != .stopping }
    return state
  }
}
