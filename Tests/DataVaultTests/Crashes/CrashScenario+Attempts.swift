import FileLayer
import Glibc

@testable import DataVault

extension CrashScenario {
  private static func failed(_ count: Int, limit: Int = 0) -> Step {
    { scene in
      try await made("old")(scene)
      let policy = VaultPolicy.lax { $0.retryLimit = limit }
      if limit > 0 { try await scene.open().setPolicy(policy) }
      try scene.record(failures: count)
    }
  }

  private static let attempt: Step = { _ = try await $0.open("wrong") }

  /// Attempts as scenarios; the expected answer of a failed attempt is an error.
  static let attempts: [CrashScenario] = [
    CrashScenario("a wrong attempt", before: made("old"), change: attempt),
    CrashScenario("a wrong attempt that backs off", before: failed(2), change: attempt),
    // If the failures cannot be cleared, the vault opens nevertheless.
    CrashScenario("a right attempt after wrong ones", before: failed(2), canBeLost: true) {
      _ = try await $0.open()
    },
    // The count can be behind the vault, which is whole or absent.
    CrashScenario(
      "a wipe", before: failed(3, limit: 3),
      between: [3, 4].map {
        "messaging: old failures=\($0) password/10 kept=1 length=0 limit=3 sealed"
      }, change: attempt),
  ]

  /// Root in a daemon's home: all files that it leaves must belong to the daemon, including lock
  /// files.
  static let daemon: [CrashScenario] =
    geteuid() != 0
    ? []
    : [
      CrashScenario("set an item in a daemon's home", before: made("old")) {
        try await $0.open().setText("2", for: "added")
      },
      CrashScenario("a wrong attempt in a daemon's home", before: made("old"), change: attempt),
      CrashScenario("create in a daemon's home", before: made("old", seals: false)) {
        try await $0.create("old", VaultID("other"))
      },
    ].map {
      var scenario = $0
      scenario.owner = FileOwner(userID: 12345, groupID: 54321)
      scenario.makesLockFiles = true
      return scenario
    }
}
