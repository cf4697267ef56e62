import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import SystemPackage
import Testing

@testable import VaultedDatabase

@Suite struct CleanUpTests {
  @Test func `cleanUpFirstRun() renames a vault whose database is gone`() async throws {
    let temporary = try await TemporaryHome.filled(.user)
    try temporary.remove("messaging.db")
    let bytes = try temporary.vaultFile()
    let sideName = try await VaultedDatabase.cleanUpFirstRun(temporary.home)
    #expect(sideName != nil)
    let files = try temporary.files()
    #expect(files["vaults/messaging.vault"] == nil)
    #expect(files.values.contains { $0 == bytes })
  }

  @Test func `cleanUpFirstRun() leaves every other vault in its place`() async throws {
    let temporary = TemporaryHome()
    #expect(try await VaultedDatabase.cleanUpFirstRun(temporary.home) == nil)
    _ = try await temporary.makeVault(.user)
    #expect(try await VaultedDatabase.cleanUpFirstRun(temporary.home) == nil)
    try await temporary.withDatabase(.user) { _ in }
    #expect(try await VaultedDatabase.cleanUpFirstRun(temporary.home) == nil)
    #expect(try temporary.vaultFile() != nil)
  }

  @Test func `deleteVault() deletes a vault with a database only with force`() async throws {
    let temporary = try await TemporaryHome.filled(.user)
    await expectRefusal(.databaseStillExists) { try await temporary.deleteVault() }
    try await temporary.deleteVault(force: true)
    #expect(try temporary.vaultFile() == nil)
  }

  @Test func `deleteVault() throws busy while another process can be making the database`()
    async throws
  {
    let temporary = TemporaryHome()
    _ = try await temporary.makeVault(.user)
    let lock = try #require(try LinuxFileSystem().lock(temporary.home.lockPath, wait: false))
    await expectRefusal(.busy) { try await temporary.deleteVault(force: true) }
    #expect(try temporary.vaultFile() != nil)
    lock.release()
    try await temporary.deleteVault()
    #expect(try temporary.vaultFile() == nil)
  }

  @Test(arguments: [VaultError.Code.storeLocked, .storeUnavailable, .unreadable])
  func `cleanUpFirstRun() changes nothing if the store cannot be read`(code: VaultError.Code)
    async throws
  {
    let temporary = try await TemporaryHome.filled(.user)
    let memory = InMemoryVaultStore()
    try await Vault.move(.messaging, from: temporary.home.store, to: memory)
    try FileManager.default.removeItem(atPath: temporary.path.string)
    let home = DataVaultHome(
      temporary.path, store: memory, vaultParameters: TemporaryHome.parameters)
    let bytes = memory[.messaging]

    memory.failure = VaultError(code, "on purpose")
    await #expect(throws: (any Error).self) { try await VaultedDatabase.cleanUpFirstRun(home) }
    #expect(memory[.messaging] == bytes)

    memory.failure = nil
    #expect(try await VaultedDatabase.cleanUpFirstRun(home) != nil)
    #expect(memory[.messaging] == nil)
  }
}
