import DataVault
import DataVaultTesting
import FileLayer
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct LifecycleTests {
  let home = TemporaryHome()

  @Test func `a created vault is unlocked, a found one locked`() async throws {
    let made = try await home.store.createVault(with: credentials("secret"))
    #expect(await !made.isLocked)
    let found = try await FastTestVault.get(.messaging, in: home.store)
    #expect(await found.isLocked)
  }

  @Test func `another vault object reads the stored items`() async throws {
    let made = try await home.store.createVault(with: credentials("secret", salt: "sea"))
    try await made.setText("wörld \"\\\n\u{0}", for: "hellö\t")
    try await made.set(SecretBytes(copying: [0, 255, 1]), kind: .binary, for: "bytes")
    let found = try await home.store.openVault(with: credentials("secret", salt: "sea"))
    #expect(try await found.text("hellö\t") == "wörld \"\\\n\u{0}")
    let item = try await found.item("bytes")
    #expect(item.kind == .binary)
    let bytes = item.bytes.array()
    #expect(bytes == [0, 255, 1])
    #expect(try await found.itemNames().map(\.name) == ["bytes", "hellö\t"])
  }

  @Test func `creating a vault again is refused and changes nothing`() async throws {
    _ = try await home.store.createVault(with: credentials("a"))
    let before = try home.bytes()
    await expect(.alreadyExists) { _ = try await home.store.createVault(with: credentials("b")) }
    #expect(try home.bytes() == before)
  }

  @Test func `queries for an absent vault create no files`() async throws {
    #expect(try await !Vault.exists(.messaging, in: home.store))
    #expect(try await Vault.list(in: home.store).isEmpty)
    #expect(await code { _ = try await Vault.get(.messaging, in: home.store) } == .doesNotExist)
    #expect(await code { try await Vault.delete(.messaging, in: home.store) } == .doesNotExist)
    #expect(try LinuxFileSystem().entries(of: home.path) == [])
  }

  @Test func `list() returns only vaults, sorted by name`() async throws {
    for name in ["zeta", "alpha", "a_1-b"] {
      _ = try await FastTestVault.create(
        VaultID(name), in: home.store, credentials: credentials("secret"))
    }
    _ = try await Vault.retire(VaultID("zeta"), in: home.store)
    #expect(try await Vault.list(in: home.store).map(\.rawValue) == ["a_1-b", "alpha"])
  }

  @Test func `a deleted vault is gone`() async throws {
    let vault = try await home.store.createVault(with: credentials("secret"))
    try await Vault.delete(.messaging, in: home.store)
    #expect(try await !Vault.exists(.messaging, in: home.store))
    #expect(await code { try await vault.setText("x", for: "y") } == .doesNotExist)
    #expect(await vault.isLocked)
  }

  @Test func `lock() can be repeated, and a locked vault refuses every operation`() async throws {
    let vault = try await home.store.createVault(with: credentials("secret"))
    try await vault.setText("value", for: "name")
    await vault.lock()
    await vault.lock()
    #expect(await vault.isLocked)
    #expect(await code { _ = try await vault.text("name") } == .locked)
    #expect(await code { try await vault.setText("x", for: "name") } == .locked)
    #expect(await code { try await vault.removeItem("name") } == .locked)
    #expect(await code { _ = try await vault.itemNames() } == .locked)
    #expect(await code { try await vault.changePassword(to: credentials("new")) } == .locked)
    try await vault.unlock(with: credentials("secret"))
    #expect(try await vault.text("name") == "value")
  }

  @Test(arguments: [("Secret", "salt"), ("secret", "Salt"), ("secret", nil), ("secret\n", "salt")])
  func `a wrong password and a wrong salt have the same error`(
    password: String, salt: String?
  ) async throws {
    let vault = try await home.store.createVault(with: credentials("secret", salt: "salt"))
    await vault.lock()
    await expect(.wrongPassword) { try await vault.unlock(with: credentials(password, salt: salt)) }
    #expect(await vault.isLocked)
  }

  @Test func `a wrong password leaves an unlocked vault unlocked`() async throws {
    let vault = try await home.store.createVault(with: credentials("secret"))
    #expect(await code { try await vault.unlock(with: credentials("no")) } == .wrongPassword)
    #expect(await !vault.isLocked)
  }

  @Test func `status() returns the public information without a password`() async throws {
    let vault = try await home.store.createVault(with: .standard)
    var status = try await vault.status()
    #expect(!status.isSecured)
    #expect(status.isAuthenticated)
    #expect(status.formatVersion == 1)
    #expect(status.binding == nil)
    #expect(status.slots.map(\.iterationCount) == [10])
    try await vault.changePassword(to: credentials("mine"))
    await vault.lock()
    status = try await vault.status()
    #expect(status.isSecured)
    #expect(!status.isAuthenticated)
  }

  @Test(arguments: [
    VaultError.Code.storeLocked, .storeUnavailable, .unreadable, .permissionsTooOpen,
  ])
  func `an unavailable store is never taken for a store without the vault`(
    reason: VaultError.Code
  ) async throws {
    let store = InMemoryVaultStore()
    let vault = try await store.createVault(with: credentials("secret"))
    store.failure = VaultError(reason, "a test says so")
    #expect(await code { _ = try await Vault.exists(.messaging, in: store) } == reason)
    #expect(await code { _ = try await Vault.get(.messaging, in: store) } == reason)
    #expect(await code { _ = try await Vault.list(in: store) } == reason)
    #expect(await code { try await Vault.delete(.messaging, in: store, force: true) } == reason)
    #expect(await code { _ = try await Vault.retire(.messaging, in: store) } == reason)
    #expect(await code { _ = try await store.createVault(with: credentials("b")) } == reason)
    #expect(await code { try await vault.setText("x", for: "a") } == reason)
    store.failure = nil
    try await vault.setText("x", for: "a")
  }

  @Test func `delete() also removes the file that a crash left behind`() async throws {
    _ = try await home.store.createVault(with: credentials("p"))
    let left = home.directory.appending(".messaging.vault.new")
    try LinuxFileSystem().replace(
      left, with: home.bytes(), permissions: .ownerReadWrite, owner: nil)
    try await Vault.delete(.messaging, in: home.store)
    #expect(try LinuxFileSystem().entries(of: home.directory) == ["messaging.lock"])
  }

  @Test(arguments: ["", "-a", "_a", "A", "a.b", "a/b", "ä", String(repeating: "a", count: 65)])
  func `an invalid vault name is refused`(name: String) {
    #expect(throws: VaultError.self) { try VaultID(name) }
  }
}
