import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@Suite struct ItemTests {
  let store = InMemoryVaultStore()

  private func vault() async throws -> Vault {
    try await store.createVault(with: credentials("secret"))
  }

  @Test func `an item's name has 1 to 255 bytes, with an error for each limit`() async throws {
    let vault = try await vault()
    #expect(await code { try await vault.setText("x", for: "") } == .nameEmpty)
    #expect(await code { _ = try await vault.text("") } == .nameEmpty)
    let longest = String(repeating: "ä", count: 127) + "n"
    try await vault.setText("x", for: longest)
    #expect(try await vault.text(longest) == "x")
    #expect(await code { try await vault.setText("x", for: longest + "n") } == .nameTooLong)
    #expect(await code { try await vault.removeItem(longest + "n") } == .nameTooLong)
  }

  @Test func `item(_:orStoring:kind:) stores a value once, and returns the first of several`()
    async throws
  {
    let store = HookedVaultStore()
    let first = try await store.createVault(with: credentials("secret"))
    let before = store.base[.messaging]
    #expect(
      try await first.item("k", orStoring: secret("1"), kind: .string).bytes.text() == "1")
    let after = store.base[.messaging]
    #expect(
      try await first.item("k", orStoring: secret("2"), kind: .string).bytes.text() == "1")
    // Another process stores its value after this one has found none.
    store.base[.messaging] = before
    let second = try await store.openVault(with: credentials("secret"))
    store.atNextLock { store.base[.messaging] = after }
    #expect(
      try await second.item("k", orStoring: secret("2"), kind: .string).bytes.text() == "1")
    #expect(try await first.text("k") == "1")
  }

  @Test func `a value has at most 1 MiB`() async throws {
    let vault = try await vault()
    let largest = SecretBytes(copying: [UInt8](repeating: 0, count: 1 << 20))
    try await vault.set(largest, kind: .binary, for: "binary")
    // Zero bytes give the longest JSON strings: six characters each.
    try await vault.set(largest, kind: .string, for: "string")
    #expect(try await vault.item("string").bytes.byteCount == 1 << 20)
    let tooLarge = SecretBytes(copying: [UInt8](repeating: 0, count: 1 << 20 + 1))
    await expect(.valueTooLarge) { try await vault.set(tooLarge, kind: .binary, for: "more") }
  }

  @Test func `items leave room for keys, anchors and settings`() async throws {
    var parameters = VaultParameters.cheap
    #expect(parameters.maximumItemTextByteCount == 31 << 20)
    parameters.maximumItemTextByteCount = 1000
    let vault = try await Vault.create(
      .messaging, in: store, credentials: credentials("secret"), parameters: parameters)
    // Each byte takes six in JSON.
    let control = String(repeating: "\u{1}", count: 150)
    #expect(await code { try await vault.setText(control, for: "a") } == .vaultFull)
    try await vault.setText("text", for: "a")
    try await vault.changePolicy { $0.minimumLength = 100 }
  }

  @Test func `all items have at most 16 MiB, and a full vault still works`() async throws {
    var parameters = VaultParameters.cheap
    #expect(parameters.maximumTotalByteCount == 16 << 20)
    parameters.maximumTotalByteCount = 100
    let vault = try await Vault.create(
      .messaging, in: store, credentials: credentials("secret"), parameters: parameters)
    try await vault.setText(String(repeating: "v", count: 89), for: "a")
    #expect(await code { try await vault.setText("123456789", for: "bb") } == .vaultFull)
    #expect(try await vault.itemNames().count == 1)
    try await vault.setText("12345678", for: "bb")
    #expect(await code { try await vault.setText("123456789", for: "bb") } == .vaultFull)
    #expect(try await vault.text("bb") == "12345678")
    try await vault.removeItem("a")
    try await vault.setText("123456789", for: "bb")
    let again = try await store.openVault(with: credentials("secret"))
    #expect(try await again.text("bb") == "123456789")
  }

  @Test func `a value replaces an earlier value of either kind`() async throws {
    let vault = try await vault()
    try await vault.setText("text", for: "a")
    #expect(await code { _ = try await vault.item("a", kind: .binary) } == .wrongItemKind)
    try await vault.set(SecretBytes(copying: [1]), kind: .binary, for: "a")
    #expect(try await vault.item("a", kind: .binary).bytes.array() == [1])
    #expect(try await vault.itemNames().map(\.kind) == [.binary])
  }

  @Test func `a missing item has its own error`() async throws {
    let vault = try await vault()
    #expect(await code { _ = try await vault.text("a") } == .itemNotFound)
    #expect(await code { try await vault.removeItem("a") } == .itemNotFound)
    try await vault.setText("x", for: "a")
    try await vault.removeItem("a")
    #expect(await code { _ = try await vault.text("a") } == .itemNotFound)
  }

  @Test func `names are compared by their bytes, not by their appearance`() async throws {
    let vault = try await vault()
    try await vault.setText("composed", for: "\u{E9}")
    try await vault.setText("decomposed", for: "e\u{301}")
    #expect(try await vault.itemNames().count == 2)
    #expect(try await vault.text("\u{E9}") == "composed")
  }

  @Test func `a string is accepted exactly if the standard library finds it valid UTF-8`()
    async throws
  {
    let vault = try await vault()
    var generator = SystemRandomNumberGenerator()
    let leads: [UInt8] = [
      0x41, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF,
      0x8F, 0x90, 0x9F, 0xA0,
    ]
    for _ in 0..<2000 {
      let bytes = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
        leads.randomElement(using: &generator) ?? 0
      }
      let isValid = String(validating: bytes, as: UTF8.self) != nil
      let isTaken =
        await code { try await vault.set(SecretBytes(copying: bytes), kind: .string, for: "s") }
        == nil
      #expect(isTaken == isValid, "\(bytes)")
    }
  }

  @Test func `a vault matches a dictionary after random changes`() async throws {
    let vault = try await vault()
    var expected: [String: [UInt8]] = [:]
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<300 {
      let name = "n" + String(Int.random(in: 0..<20, using: &generator))
      if expected[name] != nil && Bool.random(using: &generator) {
        try await vault.removeItem(name)
        expected[name] = nil
      } else {
        let value = RandomSource.system.bytes(count: Int.random(in: 0..<80, using: &generator))
        try await vault.set(SecretBytes(copying: value), kind: .binary, for: name)
        expected[name] = value
      }
    }
    let again = try await store.openVault(with: credentials("secret"))
    #expect(try await again.itemNames().map(\.name) == expected.keys.sorted())
    for (name, value) in expected {
      #expect(try await again.item(name).bytes.array() == value)
    }
  }
}
