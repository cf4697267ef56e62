import DataVault
import FileRecording
import SealedVFS
import Synchronization
import SystemPackage
import Testing
import VaultCrypto

@testable import VaultedDatabase

@Suite struct KeyChangeTests {
  @Test func `changeKey() seals the database under a new key, the only one in the vault`()
    async throws
  {
    let temporary = try await TemporaryHome.filled(.user)
    let vault = try await temporary.unlockedVault(.user)
    let old = try await vault.databaseKeys().current.copy()
    let progress = Mutex<[PageProgress]>([])
    try await VaultedDatabase.changeKey(of: temporary.home, vault: vault) { step in
      progress.withLock { $0.append(step) }
    }
    let keys = try await vault.databaseKeys()
    let hasPending = keys.hasPending()
    #expect(!hasPending)
    try expectKeyChange(of: temporary.home.databasePath, from: old, to: keys.current)
    let last = progress.withLock { $0.last }
    #expect(last != nil && last?.completedPageCount == last?.pageCount)
    #expect(try temporary.files()[".messaging.db.new"] == nil)
    #expect(try await temporary.rowCount(.user) == 500)
  }

  @Test func `changeKey() throws busy for an open database and changes nothing`() async throws {
    let temporary = try await TemporaryHome.filled(.user)
    try await temporary.withDatabase(.user) { _ in
      let vault = try await temporary.unlockedVault(.user)
      let before = try temporary.vaultFile()
      await expectRefusal(.busy) { try await temporary.changeKey(of: vault) }
      #expect(try temporary.vaultFile() == before)
    }
    #expect(try await temporary.rowCount(.user) == 500)
  }

  @Test func `changeKey() refuses a locked vault and a missing database`() async throws {
    let temporary = TemporaryHome()
    let vault = try await temporary.makeVault(.user)
    await expectRefusal(.databaseMissing) { try await temporary.changeKey(of: vault) }
    #expect(try temporary.files()["messaging.db"] == nil)
    await vault.lock()
    await expectRefusal(.vaultLocked) { try await temporary.changeKey(of: vault) }
  }

  @Test func `changeKey() stops at a damaged page and leaves the vault unchanged`() async throws {
    let temporary = try await TemporaryHome.filled(.user)
    try temporary.damageLastPage()
    let vault = try await temporary.unlockedVault(.user)
    let before = try temporary.vaultFile()
    await expectRefusal(.damaged) { try await temporary.changeKey(of: vault) }
    #expect(try temporary.vaultFile() == before)
    #expect(try temporary.files()[".messaging.db.new"] == nil)
  }

  @Test(arguments: [Errno.noSpace, .readOnlyFileSystem])
  func `changeKey() leaves a key that opens the database if the disk refuses writes`(_ errno: Errno)
    async throws
  {
    let stepCount = try await FileRecorder.atEachStep(failing: errno) { recorder, step in
      let temporary = try await TemporaryHome.filled(.user, rowCount: 20)
      let before = try temporary.vaultFile()
      let vault = try await temporary.unlockedVault(.user)
      var code: VaultedDatabaseError.Code?
      do throws(VaultedDatabaseError) {
        try await VaultedDatabase.changeKey(of: temporary.recorded(by: recorder), vault: vault)
      } catch {
        code = error.code
      }
      let isCopyWritten = recorder.events.contains {
        if case .synchronize(let path) = $0 { path.string.hasSuffix(".new") } else { false }
      }
      if !isCopyWritten {
        #expect([.diskFull, .readOnly].contains(code), "at \(step)")
        #expect(try temporary.vaultFile() == before, "at \(step)")
        #expect(try temporary.files()[".messaging.db.new"] == nil, "at \(step)")
      }
      #expect(try await temporary.rowCount(.user) == 20, "at \(step)")
      if !recorder.hasOccurred { #expect(code == nil) }
    }
    #expect(stepCount > 5)
  }

  @Test func `a crash at each step of changeKey() leaves a key that opens the database`()
    async throws
  {
    let stepCount = try await FileRecorder.atEachStep { recorder, crashPoint in
      let temporary = try await TemporaryHome.filled(.user, rowCount: 20)
      let home = temporary.recorded(by: recorder)
      do {
        let vault = try await home.unlockedVault(.user)
        try await VaultedDatabase.changeKey(of: home, vault: vault)
      } catch {}
      #expect(try await temporary.rowCount(.user) == 20, "crash at \(crashPoint)")
      let hasPending = try await temporary.unlockedVault(.user).databaseKeys().hasPending()
      #expect(!hasPending, "crash at \(crashPoint): opening finishes the change of key")
    }
    #expect(stepCount > 10)
  }
}
