import DataVault
import FileLayer
import Foundation
import MessagingQueue
import SystemPackage
import VaultCrypto
import VaultedDatabase

/// A home in a folder of its own, gone with this object, whose vaults cost nothing and have clocks that
/// stand still.
final class EngineHome: Sendable {
  let folder: URL
  let home: DataVaultHome
  let time = ManualTimeSource()

  init() {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("engine-home-\(UUID().uuidString)")
    var parameters = VaultParameters()
    parameters.iterationCount = 10
    parameters.minimumIterationCount = 10
    parameters.now = { [time] in time.now }
    parameters.sinceBoot = { [time] in time.sinceBoot }
    parameters.sleep = { _ in try await Task.sleep(for: .seconds(3600)) }
    home = DataVaultHome(
      FilePath(folder.path), fileSystem: LinuxFileSystem(), vaultParameters: parameters)
  }

  deinit {
    try? FileManager.default.removeItem(at: folder)
  }

  /// The messaging vault, made and unlocked.
  func makeVault(policy: VaultPolicy? = nil) async throws -> Vault {
    try await Vault.create(
      .messaging, in: home.store, credentials: Self.credentials, policy: policy,
      parameters: home.vaultParameters)
  }

  /// The same vault, as another process opens it.
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
    Credentials(password: SecretBytes(copying: Array("long secret".utf8)))
  }
}
