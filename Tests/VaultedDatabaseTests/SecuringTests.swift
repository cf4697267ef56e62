import DataVault
import FileRecording
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@testable import VaultedDatabase

@Suite struct SecuringTests {
  @Test func `secure() before the first start makes a vault that only the user's password opens`()
    async throws
  {
    let temporary = TemporaryHome()
    try await temporary.secure()
    let vault = try await temporary.unlockedVault(.user)
    #expect(try await vault.status().isSecured)
    await #expect(throws: VaultError.self) { _ = try await temporary.unlockedVault(.standard) }
  }

  @Test func `secure() after the first start seals the database under another key`() async throws {
    let temporary = try await TemporaryHome.filled(.standard)
    let oldVault = try await temporary.unlockedVault(.standard)
    let old = try await oldVault.databaseKeys().current.copy()
    try await temporary.secure()
    let vault = try await temporary.unlockedVault(.user)
    let after = try await vault.databaseKeys()
    let hasPending = after.hasPending()
    #expect(!hasPending)
    try expectKeyChange(of: temporary.home.databasePath, from: old, to: after.current)
    #expect(try await temporary.rowCount(.user) == 500)
  }

  @Test func `a second secure() throws alreadySecured`() async throws {
    let temporary = TemporaryHome()
    try await temporary.secure()
    await expectRefusal(.alreadySecured) {
      try await VaultedDatabase.secure(temporary.home, with: credentials("another password"))
    }
  }

  @Test func `secure() throws busy for an open database and changes nothing`() async throws {
    let temporary = try await TemporaryHome.filled(.standard)
    try await temporary.withDatabase(.standard) { _ in
      let before = try temporary.vaultFile()
      await expectRefusal(.busy) { try await temporary.secure() }
      #expect(try temporary.vaultFile() == before)
    }
    #expect(try await temporary.rowCount(.standard) == 500)
  }

  @Test func `secure() stops at a damaged page and leaves the vault unchanged`() async throws {
    let temporary = try await TemporaryHome.filled(.standard)
    try temporary.damageLastPage()
    let before = try temporary.vaultFile()
    await expectRefusal(.damaged) { try await temporary.secure() }
    #expect(try temporary.vaultFile() == before)
    #expect(try temporary.files()[".messaging.db.new"] == nil)
  }

  @Test func `secure() leaves one password that opens everything if the disk is full`() async throws
  {
    let stepCount = try await FileRecorder.atEachStep(failing: .noSpace) { recorder, step in
      let temporary = try await TemporaryHome.filled(.standard)
      let before = try temporary.vaultFile()
      let home = temporary.recorded(by: recorder)
      try? await VaultedDatabase.secure(home, with: .user)
      let isCopyWritten = recorder.events.contains {
        if case .synchronize(let path) = $0 { path.string.hasSuffix(".new") } else { false }
      }
      if !isCopyWritten {
        #expect(try temporary.vaultFile() == before, "full at \(step)")
        #expect(try temporary.files()[".messaging.db.new"] == nil, "full at \(step)")
      }
      let isSecured = try await temporary.isSecured()
      #expect(try await temporary.rowCount(isSecured ? .user : .standard) == 500, "full at \(step)")
    }
    #expect(stepCount > 10)
  }

  @Test func `secure() makes no vault for a database without one`() async throws {
    let temporary = try await TemporaryHome.filled(.standard)
    try temporary.remove("vaults/messaging.vault")
    await expectRefusal(.keyMissing) { try await temporary.secure() }
  }

  @Test func `a crash at each step of secure() leaves a password that opens everything`()
    async throws
  {
    let stepCount = try await FileRecorder.atEachStep { recorder, crashPoint in
      let temporary = try await TemporaryHome.filled(.standard)
      try? await VaultedDatabase.secure(temporary.recorded(by: recorder), with: .user)
      let isSecured = try await temporary.isSecured()
      #expect(
        try await temporary.rowCount(isSecured ? .user : .standard) == 500,
        "crash at \(crashPoint)")
      if isSecured {
        let hasPending = try await temporary.unlockedVault(.user).databaseKeys().hasPending()
        #expect(!hasPending, "opening finishes the change of key")
      }
    }
    #expect(stepCount > 10)
  }
}
