import DataVaultTesting
import FileLayer

@testable import DataVault

extension CrashScenario {
  private static let old = "messaging: old failures=0 password/10 kept=1 length=0 limit=0 sealed"

  private static let exported: Step = { scene in
    try await made("old")(scene)
    try await Vault.export(.messaging, from: scene.store, to: scene.exported)
    try await Vault.delete(.messaging, in: scene.store)
  }

  static let moving: [CrashScenario] = [
    CrashScenario("copy to another store", before: opened) {
      try await Vault.copy(.messaging, from: $0.store, to: $0.second)
    },
    CrashScenario(
      "move to another store", before: opened, between: ["\(old); second \(old)"]
    ) { try await Vault.move(.messaging, from: $0.store, to: $0.second) },
    CrashScenario("export", before: made("old")) {
      try $0.store.export(.messaging, to: $0.exported, in: $0.fileSystem)
    },
    CrashScenario("import", before: exported) {
      try await Vault.importVault(Vault.loadExportedVault(at: $0.exported), into: $0.store)
    },
    CrashScenario("import under another id", before: exported) { scene in
      _ = try await Vault.importVault(
        Vault.loadExportedVault(at: scene.exported), as: VaultID("other"),
        with: .password(CrashScene.credentials("old")), into: scene.store,
        parameters: scene.parameters)
    },
  ]
}
