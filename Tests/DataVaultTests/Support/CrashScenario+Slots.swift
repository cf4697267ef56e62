import DataVault
import DataVaultTesting
import VaultCrypto

extension CrashScenario {
  /// The usual view, and which slots there are.
  private static let viewOfSlots: @Sendable (FileVaultStore) async throws -> String = { store in
    let slots = try await CheapVault.get(.messaging, in: store).status().slotIdentifiers
    return try await view(store) + " " + slots.joined(separator: ",")
  }

  private static let madeWithCode: @Sendable (FileVaultStore) async throws -> Void = { store in
    try await made("old")(store)
    try await open(store).addRecoveryCode(SlotSecrets.code(), named: "paper")
  }

  static let slots: [CrashScenario] = [
    CrashScenario(
      "add a recovery code", before: made("old"),
      change: { _ = try await open($0).addRecoveryCode(named: "paper").text().byteCount },
      view: viewOfSlots),
    CrashScenario(
      "add a key file", before: made("old"),
      change: { try await open($0).addKeyFile(named: "usb", key: .random(byteCount: 32)) },
      view: viewOfSlots),
    CrashScenario(
      "remove a slot", before: madeWithCode,
      change: { try await open($0).removeSlot(named: "paper") }, view: viewOfSlots),
    CrashScenario(
      "rotate", before: madeWithCode,
      change: { store in
        var secrets = VaultSecrets()
        secrets.append(.password(credentials("old")))
        try await open(store).rotate(keeping: secrets, dropping: ["paper"])
      }, view: viewOfSlots),
    CrashScenario(
      "set a password in place of a forgotten one", before: madeWithCode,
      change: { store in
        let vault = try await CheapVault.get(.messaging, in: store)
        try await vault.unlock(with: .recoveryCode(SlotSecrets.code()))
        try await vault.changePassword(to: credentials("new"))
      }, view: viewOfSlots),
  ]
}
