import DataVault
import DataVaultTesting
import Dispatch
import Testing
import VaultCrypto

/// What becomes of a session when its vault gets new keys, or goes.
@Suite struct SessionKeyChangeTests {
  let bench = SessionFixture()

  /// What gives a vault new keys, or takes it away.
  enum Change: CaseIterable, Sendable {
    case rotate, secure, leaveStandardByPassword, leaveStandardLocked, delete, retire, wipe

    var beginsStandard: Bool {
      self == .secure || self == .leaveStandardByPassword || self == .leaveStandardLocked
    }
  }

  private func make(_ change: Change, _ vault: Vault) async throws {
    switch change {
    case .rotate:
      var kept = VaultSecrets()
      kept.append(.password(credentials("secret")))
      try await vault.rotate(keeping: kept)
    case .secure: try await vault.secure(to: credentials("other"))
    case .leaveStandardByPassword: try await vault.changePassword(to: credentials("other"))
    case .leaveStandardLocked:
      try await bench.found().changePassword(from: .standard, to: credentials("other"))
    case .delete:
      try await Vault.delete(
        .messaging, in: bench.home.store, force: false, databaseExists: false,
        parameters: bench.parameters)
    case .retire:
      _ = try await Vault.retire(
        .messaging, in: bench.home.store, parameters: bench.parameters)
    case .wipe:
      var policy = try await vault.policy()
      policy.retryLimit = 1
      try await vault.setPolicy(policy)
      let found = try await bench.found()
      for wanted in [VaultError.Code.wrongPassword, .wiped] {
        #expect(await code { try await found.unlock(with: credentials("wrong")) } == wanted)
      }
    }
  }

  @Test(arguments: Change.allCases)
  func `new keys and a vault that goes end the session at once`(change: Change) async throws {
    let owner =
      if change.beginsStandard {
        try await bench.create(credentials: .standard)
      } else {
        try await bench.create()
      }
    try await owner.openSession(for: .seconds(60))
    let other = try await bench.found()
    #expect(try await other.unlockWithSession())
    try await make(change, owner)
    #expect(bench.keyring.entries.isEmpty)
    // Nobody has called it since.
    #expect(try await eventually { await other.isLocked })
    #expect(other.isLockedFromOutside)
  }

  @Test(arguments: [Change.rotate, .delete, .retire])
  func `a session that begins while the vault gets new keys, or goes, does not stay`(
    change: Change
  ) async throws {
    let owner = try await bench.create()
    let other = try await bench.found()
    try await other.unlock(with: credentials("secret"))
    bench.keyring.beforeStoring = {
      // The vault's own thread waits for it.
      let isDone = DispatchSemaphore(value: 0)
      Task.detached {
        try? await make(change, other)
        isDone.signal()
      }
      isDone.wait()
    }
    let failure = await code { try await owner.openSession(for: .seconds(60)) }
    #expect(failure == (change == .rotate ? .locked : .doesNotExist))
    #expect(bench.keyring.entries.isEmpty)
  }

  @Test func `who makes new keys by a session stays unlocked without it`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    try await make(.rotate, vault)
    #expect(bench.keyring.entries.isEmpty)
    try await Task.sleep(for: .milliseconds(600))
    #expect(try await vault.text("name") == "value")
    #expect(!vault.isLockedFromOutside)
  }

  @Test func `another slot or another password ends no session`() async throws {
    let vault = try await bench.create()
    try await vault.openSession(for: .seconds(60))
    try await vault.addKeyFile(named: "key", key: SecretBytes.random(byteCount: 32))
    try await vault.changePassword(to: credentials("other"))
    try await vault.removeSlot(named: "key")
    try await bench.found().changePassword(from: credentials("other"), to: credentials("third"))
    #expect(bench.keyring.entries.count == 1)
    #expect(try await bench.found().unlockWithSession())
  }
}
