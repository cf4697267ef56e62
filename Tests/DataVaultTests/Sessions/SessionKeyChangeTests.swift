import DataVault
import DataVaultTesting
import Dispatch
import TestSupport
import Testing
import VaultCrypto

/// The end of a session when its vault gets new keys or is removed.
@Suite struct SessionKeyChangeTests {
  let fixture = SessionFixture()

  /// The changes that give a vault new keys or remove it.
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
      try await fixture.found().changePassword(from: .standard, to: credentials("other"))
    case .delete:
      try await Vault.delete(
        .messaging, in: fixture.home.store, force: false, databaseExists: false,
        parameters: fixture.parameters)
    case .retire:
      _ = try await Vault.retire(.messaging, in: fixture.home.store, parameters: fixture.parameters)
    case .wipe:
      try await vault.changePolicy { $0.retryLimit = 1 }
      let found = try await fixture.found()
      for wanted in [VaultError.Code.wrongPassword, .deletedByRetryLimit] {
        #expect(await code { try await found.unlock(with: credentials("wrong")) } == wanted)
      }
    }
  }

  @Test(arguments: Change.allCases)
  func `new keys or the removal of the vault end the session without delay`(change: Change)
    async throws
  {
    let owner =
      if change.beginsStandard {
        try await fixture.create(credentials: .standard)
      } else {
        try await fixture.create()
      }
    try await owner.openSession(for: .seconds(60))
    let other = try await fixture.unlockedBySession()
    try await make(change, owner)
    #expect(fixture.keyring.entries.isEmpty)
    // The other object notices this without a call.
    try await eventually { await other.isLocked }
    #expect(other.isLockedFromOutside)
  }

  @Test(arguments: [Change.rotate, .delete, .retire])
  func `a session that begins while the vault gets new keys or is removed is ended`(
    change: Change
  ) async throws {
    let owner = try await fixture.create()
    let other = try await fixture.found()
    try await other.unlock(with: credentials("secret"))
    fixture.keyring.beforeStoring = {
      // The vault's own thread waits for the change.
      let isDone = DispatchSemaphore(value: 0)
      Task.detached {
        try? await make(change, other)
        isDone.signal()
      }
      isDone.wait()
    }
    let failure = await code { try await owner.openSession(for: .seconds(60)) }
    #expect(failure == (change == .rotate ? .locked : .doesNotExist))
    #expect(fixture.keyring.entries.isEmpty)
  }

  @Test func `a vault that makes new keys through a session stays unlocked without it`()
    async throws
  {
    try await fixture.create().openSession(for: .seconds(60))
    let vault = try await fixture.unlockedBySession()
    let other = try await fixture.unlockedBySession()
    try await make(.rotate, vault)
    #expect(fixture.keyring.entries.isEmpty)
    #expect(!vault.endsWithSession)
    try await eventually { await other.isLocked }
    #expect(try await vault.text("name") == "value")
    #expect(!vault.isLockedFromOutside)
  }

  @Test func `adding a slot or changing the password ends no session`() async throws {
    let vault = try await fixture.create()
    try await vault.openSession(for: .seconds(60))
    try await vault.addKeyFile(named: "key", key: SecretBytes.random(byteCount: 32))
    try await vault.changePassword(to: credentials("other"))
    try await vault.removeSlot(named: "key")
    try await fixture.found().changePassword(from: credentials("other"), to: credentials("third"))
    #expect(fixture.keyring.entries.count == 1)
    #expect(try await fixture.found().unlockWithSession())
  }
}
