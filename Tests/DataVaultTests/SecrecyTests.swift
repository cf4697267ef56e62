import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@Suite struct SecrecyTests {
  /// The forms in which a secret could be stored in a file.
  private func forms(_ text: String) -> [[UInt8]] {
    let bytes = Array(text.utf8)
    let hex = bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    var forms = [bytes, Array(hex.utf8), Array(hex.uppercased().utf8), Array(bytes.reversed())]
    // Base64 at each of the three alignments, without the characters that also encode adjacent
    // bytes.
    for shift in 0..<3 {
      let text = Base64.url([UInt8](repeating: 0, count: shift) + bytes)
      forms.append(Array(text.utf8.dropFirst(4).dropLast(2)))
    }
    return forms
  }

  private func find(_ secrets: [String], in home: TemporaryHome) throws -> [String] {
    let files = try home.tree().values
    #expect(files.contains { !$0.isEmpty })
    return secrets.filter { secret in
      forms(secret).contains { form in files.contains { $0.firstRange(of: form) != nil } }
    }
  }

  let secrets = [
    "a-password-of-mine", "a-salt-of-my-own", "an-item's-name", "an-item's-value", "binary-value",
  ]

  @Test func `no file contains a password, a salt, an item's name or its value`() async throws {
    let home = TemporaryHome()
    let vault = try await FastTestVault.create(
      .messaging, in: home.store,
      credentials: credentials("a-password-of-mine", salt: "a-salt-of-my-own"))
    try await vault.setText("an-item's-value", for: "an-item's-name")
    try await vault.set(secret("binary-value"), kind: .binary, for: "b")
    try await vault.changePassword(to: credentials("a-salt-of-my-own", salt: "a-password-of-mine"))
    #expect(try find(secrets, in: home) == [])
  }

  @Test func `the same search finds secrets in an unencrypted file`() async throws {
    let home = TemporaryHome()
    let clear = #"{"an-item's-name":{"string":"an-item's-value"},"b":{"binary":"BINARY"}}"#
      .replacing("BINARY", with: Base64.url(Array("binary-value".utf8)))
    try home.put(Array((clear + "a-password-of-mine" + "a-salt-of-my-own").utf8))
    #expect(try find(secrets, in: home) == secrets)
  }

  @Test func `no error contains a secret`() async throws {
    let store = InMemoryVaultStore()
    let vault = try await store.createVault(with: credentials("a-password-of-mine"))
    try await vault.setText("an-item's-value", for: "an-item's-name")
    var errors: [VaultError] = []
    func collect(_ body: () async throws -> Void) async {
      do { try await body() } catch { errors += [error as? VaultError].compactMap { $0 } }
    }
    await collect { try await vault.unlock(with: credentials("a-salt-of-my-own")) }
    await collect {
      _ = try await vault.item("an-item's-name", kind: .binary).kind
    }
    await collect {
      _ = try await vault.item("an-item's-name2").kind
    }
    await collect {
      try await vault.set(
        SecretBytes(copying: Array("an-item's-value".utf8) + [0xFF]), kind: .string, for: "a")
    }
    #expect(errors.count == 4)
    for error in errors {
      let text = "\(error) \(error.message) \(error.hint ?? "")"
      for secret in secrets { #expect(!text.contains(secret)) }
    }
  }

  @Test func `two vaults with one password share only the bytes of the format`() async throws {
    let store = InMemoryVaultStore()
    for name in ["a", "b"] {
      _ = try await FastTestVault.create(VaultID(name), in: store, credentials: credentials("same"))
    }
    let a = try #require(store[try VaultID("a")])
    let b = try #require(store[try VaultID("b")])
    let pieces = stride(from: 0, to: a.count - 20, by: 1).map { Array(a[$0..<$0 + 20]) }
    let text = String(decoding: a, as: UTF8.self)
    let shared = pieces.filter { b.firstRange(of: $0) != nil }
    #expect(shared.count < text.count / 2)
    for name in ["p2s\":\"", "encrypted_key\":\"", "tag\":\"", "iv\":\"", "digest\":\""] {
      let start = try #require(text.firstRange(of: name)).upperBound
      let value = Array(text[start...].prefix(16).utf8)
      #expect(b.firstRange(of: value) == nil, "\(name)")
    }
  }
}
