import FileLayer
import Testing
import VaultCrypto

@testable import DataVault

/// One change of a home, and the way to distinguish the state before it from the state after it.
struct CrashScenario: Sendable, CustomTestStringConvertible {
  typealias Step = @Sendable (CrashScene) async throws -> Void

  let testDescription: String
  let before, change: Step
  /// Views that an interruption can leave besides the old and the new one.
  let between: [String]
  /// Whether an acknowledged change can be lost, because its durability is not promised.
  let canBeLost: Bool
  /// Whether faults also hit calls on the record of attempts.
  ///
  /// In most scenarios these calls belong to the unlock alone, which has scenarios of its own.
  var coversAttempts = false
  /// The owner of the home, when root changes it.
  var owner: FileOwner?
  /// Whether lock files are removed before the change, so that the change creates them.
  var makesLockFiles = false

  init(
    _ name: String, before: @escaping Step, between: [String] = [], canBeLost: Bool = false,
    change: @escaping Step
  ) {
    testDescription = name
    (self.before, self.change) = (before, change)
    (self.between, self.canBeLost) = (between, canBeLost)
  }

  static let all =
    [lifecycle, attempts, daemon].flatMap(\.self).map { scenario in
      var scenario = scenario
      scenario.coversAttempts = true
      return scenario
    } + contents + passwords + databases + slots + moving

  /// - Parameter seals: whether the home holds data that each of its vaults must open.
  static func made(_ password: String, seals: Bool = true) -> Step {
    { scene in
      let vault = try await scene.create(password)
      try await vault.setText("1", for: "kept")
      if seals { try await scene.seal(with: vault) }
    }
  }

  static func bound(_ password: String) -> Step {
    { scene in
      try await made(password)(scene)
      let vault = try await scene.open(password)
      _ = try await vault.beginBinding(databaseID: Array(1...8)).byteCount
      try await vault.completeBinding()
    }
  }

  /// A vault with a record of attempts.
  static let opened: Step = { scene in
    try await made("old")(scene)
    _ = try await scene.open()
  }

  static let lifecycle: [CrashScenario] = [
    CrashScenario("create", before: { _ in }) { try await $0.create() },
    CrashScenario(
      "create in a home that exists",
      before: { try await $0.create("old", VaultID("other")) }
    ) { try await $0.create() },
    CrashScenario(
      "create where a deletion was interrupted",
      before: { scene in
        try await made("old", seals: false)(scene)
        try scene.record(failures: 9)
        try LinuxFileSystem().remove(scene.home.file())
      }
    ) { try await $0.create() },
    CrashScenario("delete", before: opened) {
      try await Vault.delete(.messaging, in: $0.store)
    },
    CrashScenario("retire", before: opened) {
      _ = try await Vault.retire(.messaging, in: $0.store)
    },
  ]

  static let contents: [CrashScenario] = [
    CrashScenario("set an item", before: made("old")) {
      try await $0.open().setText("2", for: "added")
    },
    CrashScenario("replace an item", before: made("old")) {
      try await $0.open().setText("2", for: "kept")
    },
    CrashScenario("remove an item", before: made("old")) {
      try await $0.open().removeItem("kept")
    },
    CrashScenario("set the policy", before: made("old")) { scene in
      var policy = VaultPolicy()
      policy.minimumLength = 2
      policy.retryLimit = 7
      try await scene.open().setPolicy(policy)
    },
  ]

  static let passwords: [CrashScenario] = [
    CrashScenario("change the password", before: made("old")) {
      try await $0.open().changePassword(to: CrashScene.credentials("new"))
    },
    CrashScenario("change the password of a locked vault", before: made("old")) {
      try await $0.found().changePassword(
        from: CrashScene.credentials("old"), to: CrashScene.credentials("new"))
    },
    CrashScenario("leave the standard credentials", before: made("standard")) {
      try await $0.open("standard").changePassword(to: CrashScene.credentials("new"))
    },
    CrashScenario("secure", before: bound("standard")) {
      try await $0.open("standard").secure(to: CrashScene.credentials("new"))
    },
  ]

  static let databases: [CrashScenario] = [
    CrashScenario("begin a binding", before: made("old")) {
      _ = try await $0.open().beginBinding(databaseID: Array(1...8)).byteCount
    },
    CrashScenario(
      "complete a binding",
      before: { scene in
        try await made("old")(scene)
        _ = try await scene.open().beginBinding(databaseID: Array(1...8)).byteCount
      }, change: { try await $0.open().completeBinding() }),
    CrashScenario("prepare a pending key", before: bound("old")) {
      try await $0.open().storePendingKey(.random(byteCount: 32))
    },
    CrashScenario(
      "promote the pending key",
      before: { scene in
        try await bound("old")(scene)
        try await scene.open().storePendingKey(.random(byteCount: 32))
      }, change: { try await $0.open().promotePendingKey() }),
    CrashScenario("store an anchor", before: bound("old")) {
      try await $0.open().storeAnchor(DatabaseAnchor(id: Array(1...16), commitNumber: 5))
    },
  ]
}
