import DataVault
import DataVaultTesting
import FileRecording
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct SlotTests {
  let store = InMemoryVaultStore()

  /// A vault with a password and an item.
  private func vault() async throws -> Vault {
    let vault = try await store.createVault(with: credentials("old", salt: "sea"))
    try await vault.setText("value", for: "name")
    return vault
  }

  @Test func `a recovery code that the disk did not confirm is lost, and the error says so`()
    async throws
  {
    func add(_ recorder: FileRecorder) async throws {
      let home = TemporaryHome()
      let vault = try await home.recording(recorder).createVault(with: credentials("old"))
      _ = try await vault.addRecoveryCode(named: "paper").text().byteCount
    }
    let whole = FileRecorder()
    try await add(whole)
    let error = await #expect(throws: VaultError.self) {
      try await add(
        FileRecorder(fault: .failure(atEvent: whole.failableEventCount - 1, .ioError)))
    }
    #expect(error?.code == .writeFailed)
    #expect(
      error?.message.hasSuffix("can have the slot 'recovery:paper', whose code is lost") == true)
    #expect(error?.hint?.hasPrefix("run datavault slots remove messaging recovery:paper") == true)
  }

  @Test func `each slot opens the vault alone`() async throws {
    let vault = try await vault()
    let code = try await vault.addRecoveryCode(named: "paper")
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
    #expect(
      try await vault.status().slotIdentifiers == ["password", "recovery:paper", "keyfile:usb"])
    #expect(try await vault.status().isAuthenticated)
    #expect(try await store.refusal(.recoveryCode(code)) == nil)
    #expect(try await store.refusal(SlotSecrets.key()) == nil)
    #expect(try await store.refusal(.password(credentials("old", salt: "sea"))) == nil)
    #expect(try await store.refusal(.password(credentials("old"))) == .wrongPassword)
  }

  @Test func `a recovery code opens the vault as shown, also in lower case`() async throws {
    let shown = try await vault().addRecoveryCode(named: "paper").text().text()
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(shown.lowercased()))) == nil)
  }

  @Test func `every recovery code is different`() async throws {
    let vault = try await vault()
    let first = try await vault.addRecoveryCode(named: "a").text().text()
    let second = try await vault.addRecoveryCode(named: "b").text().text()
    #expect(first != second)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(first))) == nil)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(second))) == nil)
  }

  @Test func `a recovery code opens the vault and replaces a forgotten password`() async throws {
    let paper = try await vault().addRecoveryCode(named: "paper").text().text()
    let found = try await FastTestVault.get(.messaging, in: store)
    await expect(.wrongPassword) { try await found.unlock(with: credentials("forgotten?")) }
    try await found.unlock(with: .recoveryCode(SlotSecrets.code(paper)))
    #expect(try await found.text("name") == "value")
    try await found.changePassword(to: credentials("new"))
    #expect(try await store.refusal(.password(credentials("new"))) == nil)
    #expect(try await store.refusal(.password(credentials("old", salt: "sea"))) == .wrongPassword)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(paper))) == nil)
  }

  @Test func `a vault can drop its password and get a new one`() async throws {
    let vault = try await vault()
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
    try await vault.removeSlot(named: "password")
    #expect(try await vault.status().isSecured)
    #expect(try await store.refusal(.password(credentials("old", salt: "sea"))) == .slotNotFound)
    #expect(try await store.refusal(SlotSecrets.key()) == nil)
    try await vault.changePassword(to: credentials("new"))
    #expect(try await store.refusal(.password(credentials("new"))) == nil)
    #expect(try await store.refusal(SlotSecrets.key()) == nil)
  }

  @Test func `a removed slot opens nothing, and the others still open the vault`() async throws {
    let vault = try await vault()
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    let other = try await vault.addRecoveryCode(named: "safe").text().text()
    try await vault.removeSlot(named: "paper")
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == .wrongPassword)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(other))) == nil)
    try await vault.removeSlot(named: "recovery:safe")
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(other))) == .slotNotFound)
    #expect(try await store.refusal(.password(credentials("old", salt: "sea"))) == nil)
    #expect(await code { try await vault.removeSlot(named: "safe") } == .slotNotFound)
    #expect(await code { try await vault.removeSlot(named: "") } == .slotNotFound)
  }

  @Test func `the slot of a code is removed, and none that was added under its name since`()
    async throws
  {
    let vault = try await vault()
    let lost = try await vault.addRecoveryCode(named: "paper")
    try await vault.removeSlot(named: "paper")
    let code = try await vault.addRecoveryCode(named: "paper")
    try await vault.removeSlot(named: "paper", of: lost)
    #expect(try await vault.status().slots.count == 2)
    try await vault.removeSlot(named: "paper", of: code)
    #expect(try await vault.status().slots.count == 1)
  }

  @Test func `the last slot cannot be removed`() async throws {
    let vault = try await vault()
    #expect(await code { try await vault.removeSlot(named: "password") } == .lastSlot)
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    try await vault.removeSlot(named: "password")
    #expect(await code { try await vault.removeSlot(named: "paper") } == .lastSlot)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == nil)
  }

  @Test func `slots are added and removed only on an unlocked vault`() async throws {
    let vault = try await vault()
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    await vault.lock()
    let before = store[.messaging]
    let key = SecretBytes(copying: SlotSecrets.keyFile)
    await expect(.locked) { _ = try await vault.addRecoveryCode(named: "b").text().byteCount }
    #expect(await code { try await vault.addKeyFile(named: "b", key: key) } == .locked)
    #expect(await code { try await vault.removeSlot(named: "paper") } == .locked)
    #expect(await code { try await vault.rotate(keeping: VaultSecrets()) } == .locked)
    #expect(store[.messaging] == before)
  }

  @Test(arguments: ["paper", "usb", "password"])
  func `a slot's name is unique over all kinds`(name: String) async throws {
    let vault = try await vault()
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
    let before = store[.messaging]
    let key = SecretBytes.random(byteCount: 32)
    await expect(.slotExists) { _ = try await vault.addRecoveryCode(named: name).text().byteCount }
    #expect(await code { try await vault.addKeyFile(named: name, key: key) } == .slotExists)
    #expect(store[.messaging] == before)
  }

  @Test(arguments: [
    "", "-a", "_a", "Paper", "a b", "a:b", "a/b", "ä", String(repeating: "n", count: 33),
  ])
  func `an invalid slot name is refused`(name: String) async throws {
    let vault = try await vault()
    let key = SecretBytes.random(byteCount: 32)
    await expect(.invalidArgument) {
      _ = try await vault.addRecoveryCode(named: name).text().byteCount
    }
    #expect(await code { try await vault.addKeyFile(named: name, key: key) } == .invalidArgument)
  }

  @Test func `a vault has at most 16 slots, including the password`() async throws {
    let vault = try await vault()
    let longest = String(repeating: "n", count: 30)
    for number in 10..<25 {
      try await vault.addKeyFile(named: "\(longest)\(number)", key: .random(byteCount: 32))
    }
    await expect(.tooManySlots) {
      _ = try await vault.addRecoveryCode(named: "more").text().byteCount
    }
    try await vault.changePassword(to: credentials("new"))
    try await vault.removeSlot(named: "password")
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    // No room is left for a password.
    #expect(await code { try await vault.changePassword(to: credentials("new")) } == .tooManySlots)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == nil)
    #expect(try await vault.status().slots.count == 16)
  }

  @Test(arguments: [0, 16, 31, 33]) func `a key file has exactly 32 bytes`(
    byteCount: Int
  ) async throws {
    let vault = try await vault()
    let key = [UInt8](repeating: 1, count: byteCount)
    await expect(.keyFileLength) {
      try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: key))
    }
    #expect(try await store.refusal(SlotSecrets.key(key)) == .keyFileLength)
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
    #expect(try await store.refusal(SlotSecrets.key(key)) == .keyFileLength)
  }

  @Test func `a recovery code and a key file of another vault are refused as wrong`() async throws {
    let vault = try await vault()
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
    let other = "ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-KA6W"
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code(other))) == .wrongPassword)
    #expect(try await store.refusal(SlotSecrets.key(Array(1...32))) == .wrongPassword)
    // The two kinds differ: a code's key is derived, and a key file's key is not.
    #expect(try await store.refusal(SlotSecrets.key(SlotSecrets.codeKey)) == .wrongPassword)
  }

  @Test func `under the standard credentials slots cannot be added or removed`() async throws {
    let vault = try await store.createVault(with: .standard)
    let key = SecretBytes.random(byteCount: 32)
    await expect(.notSecured) { _ = try await vault.addRecoveryCode(named: "a").text().byteCount }
    #expect(await code { try await vault.addKeyFile(named: "a", key: key) } == .notSecured)
    #expect(await code { try await vault.removeSlot(named: "password") } == .notSecured)
    #expect(await code { try await vault.rotate(keeping: VaultSecrets()) } == .notSecured)
    try await vault.secure(to: credentials("mine"))
    try await vault.addKeyFile(named: "a", key: key)
  }

  @Test func `another object keeps the vault open and sees changed slots`() async throws {
    let vault = try await vault()
    let other = try await store.openVault(with: credentials("old", salt: "sea"))
    try await vault.addRecoveryCode(SlotSecrets.code(), named: "paper")
    try await other.setText("2", for: "more")
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == nil)
    try await other.removeSlot(named: "paper")
    #expect(try await vault.status().slotIdentifiers == ["password"])
    #expect(try await vault.text("more") == "2")
  }

  @Test func `concurrent additions of slots lose none`() async throws {
    _ = try await vault()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<5 {
        group.addTask { [store] in
          let vault = try await store.openVault(with: credentials("old", salt: "sea"))
          for number in 0..<3 {
            try await vault.addKeyFile(named: "\(writer)-\(number)", key: .random(byteCount: 32))
          }
        }
      }
      try await group.waitForAll()
    }
    let vault = try await FastTestVault.get(.messaging, in: store)
    #expect(try await Set(vault.status().slotIdentifiers).count == 16)
  }

  @Test func `an ambiguous slot name must be given in full`() async throws {
    var builder = VaultFileBuilder()
    builder.extraSlots =
      try VaultFileBuilder.slot("recovery:a", key: SlotSecrets.codeKey)
      + VaultFileBuilder.slot("keyfile:a", key: SlotSecrets.keyFile)
      + VaultFileBuilder.slot("keyfile:password", key: SlotSecrets.keyFile)
    store[.messaging] = try builder.file()
    let vault = try await FastTestVault.get(.messaging, in: store)
    try await vault.unlock(with: .recoveryCode(SlotSecrets.code()))
    #expect(await code { try await vault.removeSlot(named: "a") } == .invalidArgument)
    try await vault.removeSlot(named: "keyfile:a")
    try await vault.removeSlot(named: "a")
    try await vault.removeSlot(named: "password")
    #expect(try await vault.status().slotIdentifiers == ["keyfile:password"])
  }

  @Test func `a file's iteration counts are checked for every slot`() async throws {
    for count in ["10000001", "0"] {
      var builder = VaultFileBuilder(statedIterationCount: count)
      builder.extraSlots = try VaultFileBuilder.slot("recovery:a", key: SlotSecrets.codeKey)
      store[.messaging] = try builder.file()
      let vault = try await FastTestVault.get(.messaging, in: store)
      await expect(.damaged) { try await vault.unlock(with: .recoveryCode(SlotSecrets.code())) }
    }
  }

  @Test func `no file contains a recovery code or a key file's key`() async throws {
    let vault = try await vault()
    let text = try await vault.addRecoveryCode(named: "paper").text().text()
    try await vault.addKeyFile(named: "usb", key: SecretBytes(copying: SlotSecrets.keyFile))
    let file = String(decoding: try #require(store[.messaging]), as: UTF8.self)
    for form in [text, text.replacing("-", with: ""), text.lowercased()] {
      #expect(!file.contains(form))
    }
    #expect(!file.contains(String(decoding: SlotSecrets.keyFile, as: UTF8.self)))
    #expect(!file.contains(Base64.url(SlotSecrets.keyFile).prefix(40)))
  }
}
