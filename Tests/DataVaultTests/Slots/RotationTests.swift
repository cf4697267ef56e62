import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@Suite struct RotationTests {
  let store = InMemoryVaultStore()

  /// A vault under known keys, with the slots password, recovery:paper and keyfile:usb.
  private func vault() async throws -> Vault {
    var builder = VaultFileBuilder()
    builder.extraSlots =
      try VaultFileBuilder.slot("recovery:paper", key: SlotSecrets.codeKey)
      + VaultFileBuilder.slot("keyfile:usb", key: SlotSecrets.keyFile)
    store[.messaging] = try builder.file()
    return try await store.openVault(with: credentials("password"))
  }

  /// Whether the known keys open the stored file's key and its contents.
  private func knownKeysOpen() throws -> [Bool] {
    let (contentKey, vaultKey) = (VaultFileBuilder.contentKey, VaultFileBuilder.vaultKey)
    return try [("key", contentKey), ("contents", vaultKey)].map { member, key in
      try VaultFileBuilder.unseals(member, of: store[.messaging], key: key)
    }
  }

  private func secrets(
    _ password: String? = "password", code: Bool = true, key: Bool = true, more: [UInt8]? = nil
  ) throws -> VaultSecrets {
    var secrets = VaultSecrets()
    if let password { secrets.append(.password(credentials(password))) }
    if code { secrets.append(.recoveryCode(try SlotSecrets.code())) }
    if key { secrets.append(SlotSecrets.key()) }
    if let more { secrets.append(SlotSecrets.key(more)) }
    return secrets
  }

  @Test func `after a rotation the kept slots open the vault and the old keys open nothing`()
    async throws
  {
    let vault = try await vault()
    #expect(try knownKeysOpen() == [true, true])
    try await vault.rotate(keeping: secrets())
    #expect(try knownKeysOpen() == [false, false])
    #expect(
      try await vault.status().slotIdentifiers == ["password", "recovery:paper", "keyfile:usb"])
    #expect(try await store.refusal(.password(credentials("password"))) == nil)
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == nil)
    #expect(try await store.refusal(SlotSecrets.key()) == nil)
    try await vault.setText("2", for: "more")
    #expect(try await vault.text("name") == "value")
  }

  @Test func `a change of password or slots keeps the keys`() async throws {
    let vault = try await vault()
    try await vault.changePassword(to: credentials("long enough"))
    try await vault.removeSlot(named: "paper")
    #expect(try knownKeysOpen() == [true, true])
  }

  @Test func `rotate() drops slots by name, which then open nothing`() async throws {
    let vault = try await vault()
    try await vault.rotate(
      keeping: secrets(code: false, key: false), dropping: ["paper", "keyfile:usb"])
    #expect(try await vault.status().slotIdentifiers == ["password"])
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == .slotNotFound)
    #expect(try await store.refusal(SlotSecrets.key()) == .slotNotFound)
    #expect(try await store.refusal(.password(credentials("password"))) == nil)
  }

  @Test func `a rotation with the recovery code drops a forgotten password`() async throws {
    _ = try await vault()
    let vault = try await FastTestVault.get(.messaging, in: store)
    try await vault.unlock(with: .recoveryCode(SlotSecrets.code()))
    // The secret of a dropped slot can be given too.
    try await vault.rotate(keeping: secrets(nil), dropping: ["password", "usb"])
    #expect(try await vault.status().slotIdentifiers == ["recovery:paper"])
    #expect(try await store.refusal(.recoveryCode(SlotSecrets.code())) == nil)
    #expect(try await store.refusal(SlotSecrets.key()) == .slotNotFound)
  }

  @Test func `one secret keeps all the slots that it opens`() async throws {
    let vault = try await vault()
    try await vault.addKeyFile(named: "spare", key: SecretBytes(copying: SlotSecrets.keyFile))
    try await vault.rotate(keeping: secrets())
    #expect(try await vault.status().slots.count == 4)
  }

  @Test func `a rotation that neither keeps nor drops a slot is refused and changes nothing`()
    async throws
  {
    let vault = try await vault()
    let before = store[.messaging]
    await expect(.slotSecretMissing) { try await vault.rotate(keeping: secrets(key: false)) }
    await expect(.slotSecretMissing) {
      try await vault.rotate(keeping: secrets(nil), dropping: ["usb"])
    }
    await expect(.lastSlot) {
      try await vault.rotate(keeping: VaultSecrets(), dropping: ["password", "paper", "usb"])
    }
    await expect(.slotNotFound) { try await vault.rotate(keeping: secrets(), dropping: ["card"]) }
    #expect(await code { try await vault.rotate(keeping: secrets("wrong")) } == .wrongPassword)
    for (more, error) in [(1...32, .wrongPassword), (1...31, .keyFileLength)]
      as [(ClosedRange<UInt8>, VaultError.Code)]
    {
      await expect(error) { try await vault.rotate(keeping: secrets(more: Array(more))) }
    }
    #expect(store[.messaging] == before)
    #expect(try await vault.text("name") == "value")
  }

  @Test func `a rotation gives the password slot a new salt and today's iterations`() async throws {
    _ = try await vault()
    var parameters = VaultParameters.cheap
    parameters.iterationCount = 20
    let vault = try await Vault.get(.messaging, in: store, parameters: parameters)
    try await vault.unlock(with: .recoveryCode(SlotSecrets.code()))
    try await vault.rotate(keeping: secrets())
    #expect(try await vault.status().slots.map(\.iterationCount) == [20, nil, nil])
    let file = String(decoding: try #require(store[.messaging]), as: UTF8.self)
    #expect(!file.contains(VaultFileBuilder().p2s))
    #expect(try await store.refusal(.password(credentials("password"))) == nil)
  }

  @Test func `a rotation locks other objects out until they unlock the vault again`() async throws {
    let vault = try await vault()
    let other = try await FastTestVault.get(.messaging, in: store)
    try await other.unlock(with: SlotSecrets.key())
    try await vault.rotate(keeping: secrets())
    #expect(await code { try await other.setText("x", for: "a") } == .locked)
    #expect(await other.isLocked)
    try await other.unlock(with: SlotSecrets.key())
    try await other.setText("x", for: "a")
  }

  @Test func `a rotation keeps the keys of the database`() async throws {
    let vault = try await vault()
    let key = try await vault.beginBinding(databaseID: Array(1...8)).array()
    try await vault.completeBinding()
    let pending = SecretBytes.random(byteCount: 32)
    try await vault.storePendingKey(pending)
    let binding = try await vault.binding()
    try await vault.rotate(keeping: secrets())
    let keys = try await vault.databaseKeys()
    let current = keys.current.array()
    let next = keys.takePending()?.array()
    #expect(current == key)
    #expect(next == pending.array())
    #expect(try await vault.binding() == binding)
  }
}
