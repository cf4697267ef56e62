import DataVault
import DataVaultTesting
import Foundation
import TestSupport
import Testing
import VaultCrypto

@Suite struct PasswordTests {
  let store = InMemoryVaultStore()

  private func vault(_ credentials: borrowing Credentials) async throws -> Vault {
    let vault = try await store.createVault(with: credentials)
    try await vault.setText("value", for: "name")
    return vault
  }

  private func opens(_ credentials: consuming Credentials) async throws -> Bool {
    let refusal = try await store.refusal(.password(credentials))
    #expect(refusal == nil || refusal == .wrongPassword)
    return refusal == nil
  }

  @Test func `changePassword(to:) on an unlocked vault leaves it unlocked`() async throws {
    let vault = try await vault(credentials("old", salt: "s"))
    try await vault.changePassword(to: credentials("new"))
    #expect(await !vault.isLocked)
    #expect(try await opens(credentials("new")))
    #expect(try await !opens(credentials("old", salt: "s")))
  }

  @Test func `changePassword(from:to:) on a locked vault leaves it locked`() async throws {
    let vault = try await vault(credentials("old"))
    await vault.lock()
    await expect(.wrongPassword) {
      try await vault.changePassword(from: credentials("no"), to: credentials("new"))
    }
    #expect(try await opens(credentials("old")))
    try await vault.changePassword(from: credentials("old"), to: credentials("new", salt: "s"))
    #expect(await vault.isLocked)
    #expect(try await opens(credentials("new", salt: "s")))
    #expect(try await !opens(credentials("old")))
  }

  @Test func `changePassword(from:to:) on an unlocked vault leaves it unlocked`() async throws {
    let vault = try await vault(credentials("old"))
    try await vault.changePassword(from: credentials("old"), to: credentials("new"))
    try await vault.setText("more", for: "other")
    #expect(try await vault.text("name") == "value")
  }

  @Test func `an open vault cannot replace a password that was changed after it was opened`()
    async throws
  {
    let owner = try await vault(credentials("old"))
    let other = try await store.openVault(with: credentials("old"))
    try await owner.changePassword(to: credentials("new"))
    #expect(try await other.text("name") == "value")
    await expect(.wrongPassword) { try await other.changePassword(to: credentials("third")) }
    #expect(try await opens(credentials("new")))
    try await other.unlock(with: credentials("new"))
    try await other.changePassword(to: credentials("third"))
    try await other.changePassword(to: credentials("fourth"))
    #expect(try await opens(credentials("fourth")))
  }

  @Test func `a password that is changed while it is being checked changes no other`() async throws
  {
    let hooked = HookedVaultStore()
    let vault = try await FastTestVault.create(
      .messaging, in: hooked, credentials: credentials("old"))
    let before = try #require(hooked.base[.messaging])
    try await vault.changePassword(to: credentials("new"))
    let after = try #require(hooked.base[.messaging])
    hooked.base[.messaging] = before
    let other = try await FastTestVault.get(.messaging, in: hooked)
    // Between the derivation and the lock.
    hooked.atNextLock { () throws(VaultError) in try hooked.base.write(after, for: .messaging) }
    await expect(.wrongPassword) {
      try await other.changePassword(from: credentials("old"), to: credentials("third"))
    }
    #expect(hooked.base[.messaging] == after)
  }

  @Test func `an empty password cannot be set`() async throws {
    let vault = try await vault(credentials("old"))
    #expect(await code { try await vault.changePassword(to: credentials("")) } == .invalidArgument)
    await expect(.invalidArgument) {
      _ = try await FastTestVault.create(VaultID("b"), in: store, credentials: credentials(""))
    }
    #expect(try await Vault.list(in: store) == [.messaging])
  }

  @Test func `an empty salt is no salt`() async throws {
    _ = try await vault(credentials("old", salt: ""))
    #expect(try await opens(credentials("old")))
  }

  @Test func `passwords are raw bytes`() async throws {
    let password: [UInt8] = [0, 0xFF, 0x0A, 0]
    _ = try await vault(Credentials(password: SecretBytes(copying: password)))
    #expect(try await opens(Credentials(password: SecretBytes(copying: password))))
    #expect(try await !opens(Credentials(password: SecretBytes(copying: [0xFF, 0x0A, 0]))))
  }

  @Test func `only the standard credentials leave a vault unsecured`() async throws {
    let vault = try await vault(.standard)
    #expect(try await !vault.status().isSecured)
    try await vault.changePassword(to: credentials("datavault-standard-password"))
    #expect(try await vault.status().isSecured)
    try await vault.changePassword(to: .standard)
    #expect(try await !vault.status().isSecured)
    #expect(try await opens(.standard))
  }

  @Test func `a change of password rewraps the key, but leaving the standard one makes new keys`()
    async throws
  {
    /// The part sealed under the content key, which stays the same when only a slot is rewrapped.
    func sealedVaultKey() throws -> Substring {
      let file = String(decoding: try #require(store[.messaging]), as: UTF8.self)
      let start = try #require(file.firstRange(of: "\"iv\":"))
      return file[start.lowerBound...].prefix(200)
    }
    let vault = try await vault(.standard)
    let standard = try sealedVaultKey()
    try await vault.changePassword(to: credentials("mine"))
    let mine = try sealedVaultKey()
    #expect(mine != standard)
    try await vault.changePassword(to: credentials("other"))
    #expect(try sealedVaultKey().prefix(120) == mine.prefix(120))
    #expect(try await opens(credentials("other")))
  }

  @Test func `keys from before the vault was secured open nothing afterwards`() async throws {
    // Anyone who knew the standard password knew these keys.
    let (contentKey, vaultKey) = (VaultFileBuilder.contentKey, VaultFileBuilder.vaultKey)
    var builder = VaultFileBuilder()
    builder.password = "datavault-standard-password"
    builder.callerSalt = "datavault-standard-salt"
    builder.isSecured = false
    func unseals(_ member: String, key: [UInt8]) throws -> Bool {
      try VaultFileBuilder.unseals(member, of: store[.messaging], key: key)
    }
    for method in ["secure", "change the password"] {
      store[.messaging] = try builder.file()
      let vault = try await store.openVault(with: .standard)
      #expect(try unseals("key", key: contentKey) && unseals("contents", key: vaultKey))
      if method == "secure" {
        try await vault.secure(to: credentials("mine alone"))
      } else {
        try await vault.changePassword(from: .standard, to: credentials("mine alone"))
      }
      #expect(try !unseals("key", key: contentKey), "\(method)")
      #expect(try !unseals("contents", key: vaultKey), "\(method)")
      #expect(try await opens(credentials("mine alone")))
    }
  }

  @Test func `securing makes new keys once`() async throws {
    let vault = try await vault(.standard)
    #expect(await code { try await vault.secure(to: .standard) } == .invalidArgument)
    try await vault.secure(to: credentials("mine"))
    #expect(try await opens(credentials("mine")))
    #expect(try await !opens(.standard))
    #expect(await code { try await vault.secure(to: credentials("more")) } == .alreadySecured)
    #expect(try await opens(credentials("mine")))
  }

  @Test func `the default iteration count satisfies OWASP and joserfc`() async throws {
    let vault = try await Vault.create(
      .messaging, in: store, credentials: credentials("long enough"))
    #expect(try await vault.status().slots.map(\.iterationCount) == [300_000])
    let again = try await Vault.get(.messaging, in: store)
    try await again.unlock(with: credentials("long enough"))
  }
}
