import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@Suite struct ContentionTests {
  let home = TemporaryHome()

  /// Two unlocked vault objects on the same file, as in two processes.
  private func pair(_ credentials: borrowing Credentials) async throws -> (Vault, Vault) {
    let first = try await home.store.createVault(with: credentials)
    let second = try await home.store.openVault(with: credentials)
    return (first, second)
  }

  @Test func `two vault objects that change in turn lose no change`() async throws {
    let (first, second) = try await pair(credentials("p"))
    try await first.setText("1", for: "a")
    try await second.setText("2", for: "b")
    try await first.setText("3", for: "c")
    #expect(try await second.itemNames().map(\.name) == ["a", "b", "c"])
    try await second.removeItem("a")
    #expect(await code { _ = try await first.text("a") } == .itemNotFound)
  }

  @Test func `concurrent writers lose no change`() async throws {
    _ = try await pair(credentials("p"))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<4 {
        group.addTask { [home] in
          let vault = try await home.store.openVault(with: credentials("p"))
          for number in 0..<20 { try await vault.setText("x", for: "\(writer)-\(number)") }
        }
      }
      try await group.waitForAll()
    }
    let vault = try await home.store.openVault(with: credentials("p"))
    #expect(try await vault.itemNames().count == 80)
  }

  @Test func `exactly one of several concurrent creations succeeds`() async throws {
    let made = await withTaskGroup(of: VaultError.Code?.self) { group in
      for number in 0..<6 {
        group.addTask { [home] in
          await code {
            _ = try await FastTestVault.create(
              .messaging, in: home.store, credentials: credentials("\(number)"))
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(made.count { $0 == nil } == 1)
    #expect(made.count { $0 == .alreadyExists } == 5)
  }

  @Test func `a password change elsewhere does not undo an item that is set here`() async throws {
    let (first, second) = try await pair(credentials("old"))
    try await first.changePassword(to: credentials("new"))
    try await second.setText("1", for: "a")
    let vault = try await FastTestVault.get(.messaging, in: home.store)
    #expect(await code { try await vault.unlock(with: credentials("old")) } == .wrongPassword)
    try await vault.unlock(with: credentials("new"))
    #expect(try await vault.text("a") == "1")
  }

  @Test func `keys renewed elsewhere lock the vault here`() async throws {
    let (first, second) = try await pair(.standard)
    try await first.secure(to: credentials("mine"))
    #expect(await code { try await second.setText("1", for: "a") } == .locked)
    #expect(await second.isLocked)
    try await second.unlock(with: credentials("mine"))
    try await second.setText("1", for: "a")
    #expect(try await first.text("a") == "1")
  }

  @Test func `a file that was damaged since the last read is never overwritten`() async throws {
    let (first, _) = try await pair(credentials("p"))
    var bytes = try home.bytes()
    bytes[bytes.count - 20] ^= 1
    try home.put(bytes)
    #expect(await code { try await first.setText("1", for: "a") } == .damaged)
    #expect(try home.bytes() == bytes)
  }
}
