import DataVaultTesting
import FileLayer
import Foundation
import SystemPackage
import TestSupport
import VaultCrypto

@testable import DataVault

/// The home of a scenario: two stores, an exported file, and sealed data.
struct CrashScene: Sendable {
  let home: TemporaryHome
  var fileSystem: any FileSystem = LinuxFileSystem()
  /// Whether it is so late that no delay after failed attempts applies any more.
  var isLater = false
  /// The iterations that the software under test gives a password slot.
  var iterationCount = 10

  var store: FileVaultStore { FileVaultStore(home: home.path, fileSystem: fileSystem) }
  var second: FileVaultStore {
    FileVaultStore(home: home.path.appending("second"), fileSystem: fileSystem)
  }
  var exported: FilePath { home.path.appending("exported") }
  private var sealed: FilePath { home.path.appending("sealed") }

  var parameters: VaultParameters {
    var parameters = VaultParameters.cheap
    parameters.iterationCount = iterationCount
    let seconds: Int64 = 1_790_000_000 + (isLater ? 86_400 : 0)
    parameters.now = { UnixTime(nanoseconds: seconds * 1_000_000_000) }
    return parameters
  }

  func found(_ id: VaultID = .messaging, in store: FileVaultStore? = nil) async throws -> Vault {
    try await Vault.get(id, in: store ?? self.store, parameters: parameters)
  }

  /// The vault, opened by a password; `standard` stands for the standard credentials.
  func open(
    _ password: String = "old", _ id: VaultID = .messaging, in store: FileVaultStore? = nil
  ) async throws -> Vault {
    let vault = try await found(id, in: store)
    try await vault.unlock(with: Self.credentials(password))
    return vault
  }

  @discardableResult
  func create(_ password: String = "old", _ id: VaultID = .messaging) async throws -> Vault {
    try await Vault.create(
      id, in: store, credentials: Self.credentials(password), parameters: parameters)
  }

  static func credentials(_ password: String) -> Credentials {
    password == "standard" ? .standard : TestSupport.credentials(password)
  }

  /// Seals data that must open after every change.
  func seal(with vault: Vault) async throws {
    let bytes = try await vault.encrypt(secret("sealed"), context: [7])
    try LinuxFileSystem().make(sealed, with: bytes)
  }

  func record(failures: Int) throws {
    try store.writeAttempts(
      AttemptRecord(failureCount: failures).bytes, for: .messaging, durably: true)
  }

  /// Everything that can be observed of the home: equal states have equal views.
  func view() async throws -> String {
    var view: [String] = []
    for (place, store) in [("", store), ("second ", second)] {
      for id in try await Vault.list(in: store) {
        view.append("\(place)\(id): \(try await self.view(of: id, in: store))")
      }
      let retired = try store.retiredNames().count
      if retired > 0 { view.append("\(place)retired: \(retired)") }
    }
    if try LinuxFileSystem().status(of: exported) != nil {
      view.append("exported: \(try await Vault.loadExportedVault(at: exported).id)")
    }
    return view.isEmpty ? "nothing" : view.joined(separator: "; ")
  }

  /// The password that opens the vault, and the vault's contents and policy.
  private func view(of id: VaultID, in store: FileVaultStore) async throws -> String {
    let status = try await found(id, in: store).status()
    // The standard credentials come first: they are not an attempt, and too many failures would
    // cause a delay.
    for password in ["standard", "old", "new"] {
      let vault: Vault
      do {
        vault = try await open(password, id, in: store)
      } catch let error as VaultError where error.code == .wrongPassword {
        continue
      }
      var view = [password, "failures=\(status.failedAttemptCount)"]
      view += status.slots.map { "\($0.identifier)/\($0.iterationCount ?? 0)" }
      for name in try await vault.itemNames() {
        view.append("\(name.name)=\(try await vault.text(name.name))")
      }
      if let binding = try await vault.binding() {
        let keys = try await vault.databaseKeys()
        let hasPending = keys.pending != nil
        let commit = try await vault.anchor()?.commitNumber ?? 0
        view.append("\(binding.state) pending=\(hasPending) anchor=\(commit)")
      }
      let policy = try await vault.policy()
      view.append("length=\(policy.minimumLength) limit=\(policy.retryLimit)")
      if let bytes = try LinuxFileSystem().read(sealed, maximumByteCount: 1 << 20) {
        view.append(try await vault.decrypt(bytes, context: [7]).text())
      }
      return view.joined(separator: " ")
    }
    return "no password opens it"
  }
}
