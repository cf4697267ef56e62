import DataVault
import TestSupport
import VaultCrypto

extension CrashScenario {
  private static let madeWithCode: Step = { scene in
    try await made("old")(scene)
    try await scene.open().addRecoveryCode(SlotSecrets.code(), named: "paper")
  }

  static let slots: [CrashScenario] = [
    CrashScenario("add a recovery code", before: made("old")) {
      _ = try await $0.open().addRecoveryCode(named: "paper").text().byteCount
    },
    CrashScenario("add a key file", before: made("old")) {
      try await $0.open().addKeyFile(named: "usb", key: .random(byteCount: 32))
    },
    CrashScenario("remove a slot", before: madeWithCode) {
      try await $0.open().removeSlot(named: "paper")
    },
    CrashScenario("rotate", before: madeWithCode) { scene in
      var secrets = VaultSecrets()
      secrets.append(.password(CrashScene.credentials("old")))
      try await scene.open().rotate(keeping: secrets, dropping: ["paper"])
    },
    CrashScenario("set a password in place of a forgotten one", before: madeWithCode) { scene in
      let vault = try await scene.found()
      try await vault.unlock(with: .recoveryCode(SlotSecrets.code()))
      try await vault.changePassword(to: CrashScene.credentials("new"))
    },
    // The vault is made with 10 iterations and opened by software whose default is 20.
    CrashScenario("raise the iterations at an unlock", before: made("old"), canBeLost: true) {
      var scene = $0
      scene.iterationCount = 20
      _ = try await scene.open()
    },
  ]
}
