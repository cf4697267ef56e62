import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Foundation
import MessagingQueue
import SystemPackage
import TestSupport
import VaultCrypto
import VaultedDatabase

/// A home in a folder of its own, which this object removes.
///
/// Its vaults are cheap, and its clocks stand still.
final class EngineHome: Sendable {
  let folder: URL
  let home: DataVaultHome
  let time = ManualTimeSource()

  convenience init() {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("engine-home-\(UUID().uuidString)")
    self.init(
      folder, FileVaultStore(home: FilePath(folder.path), fileSystem: LinuxFileSystem()))
  }

  /// The same home, with its vaults in another store.
  convenience init(in place: EngineHome, store: any VaultStore) {
    self.init(place.folder, store)
  }

  private init(_ folder: URL, _ store: any VaultStore) {
    self.folder = folder
    var parameters = VaultParameters.cheap
    parameters.closingTimeout = .seconds(600)
    parameters.now = { [time] in time.now }
    parameters.sinceBoot = { [time] in time.sinceBoot }
    parameters.sleep = { _ in try await Task.sleep(for: .seconds(3600)) }
    home = DataVaultHome(
      FilePath(folder.path), store: store, fileSystem: LinuxFileSystem(),
      vaultParameters: parameters)
  }

  deinit {
    try? FileManager.default.removeItem(at: folder)
  }

  /// The database and its log, with their bytes.
  func databaseFiles() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in ["messaging.db", "messaging.db-wal"] {
      if let bytes = try? Data(contentsOf: folder.appendingPathComponent(name)) {
        files[name] = bytes
      }
    }
    return files
  }

  func replaceDatabase(_ files: [String: Data]) throws {
    for name in ["messaging.db", "messaging.db-wal", "messaging.db-shm"] {
      try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
    for (name, bytes) in files { try bytes.write(to: folder.appendingPathComponent(name)) }
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
    var configuration = EngineConfiguration()
    change(&configuration)
    return try await MessagingEngine.start(home, vault: vault, configuration: configuration)
  }

  static var credentials: Credentials {
    TestSupport.credentials("long secret")
  }
}

extension MessagingEngine {
  /// The state after the stop under way: on a busy machine the timeout of a lock can end before it.
  func settledState() async throws -> EngineState {
    while state == .stopping { try await Task.sleep(for: .milliseconds(1)) }
    return state
  }
}
