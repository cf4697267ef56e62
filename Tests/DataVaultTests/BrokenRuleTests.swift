import DataVault
import DataVaultTesting
import TestSupport
import Testing
import VaultCrypto

@Suite struct BrokenRuleTests {
  @Test(arguments: BrokenRule.all)
  func `a file that breaks one rule is damaged`(rule: BrokenRule) async throws {
    let store = InMemoryVaultStore()
    store[.messaging] = try rule.file()
    let vault = try await FastTestVault.get(.messaging, in: store)
    await expect(.damaged) { try await vault.unlock(with: credentials("password")) }
    #expect(await vault.isLocked)
    // Most rules are checked before any password is tried.
    if rule.needsNoPassword {
      #expect(await code { _ = try await vault.status() } == .damaged)
    }
  }

  @Test func `the file without a broken rule opens`() async throws {
    let store = InMemoryVaultStore()
    var builder = VaultFileBuilder()
    builder.binding = #"{"database":"AQIDBAUGBwg","state":"bound"}"#
    builder.databases =
      #"{"current":"\#(Base64.url(Array(1...32)))","pending":"\#(Base64.url(Array(2...33)))","#
      + #""anchor":{"id":"AQIDBAUGBwgJCgsMDQ4PEA","commit":17}}"#
    builder.items = #"{"\u0061\ud83d\ude00":{"string":"\b\f\n\r\t\/\"\\\u00e4"},"b":{"binary":""}}"#
    builder.extraSlots =
      #",{"header":{"alg":"A256KW","kid":"keyfile:k-1"},"encrypted_key":"\#(Base64.url(Array(1...40)))"}"#
    store[.messaging] = try builder.file()
    let vault = try await store.openVault(with: credentials("password"))
    #expect(try await vault.text("a😀") == "\u{8}\u{C}\n\r\t/\"\\ä")
    #expect(try await vault.item("b").bytes.byteCount == 0)
    // Members that this version does not use yet survive a write.
    try await vault.setText("x", for: "c")
    let status = try await vault.status()
    #expect(status.slots.map(\.kind) == [.password, .keyFile])
    #expect(status.slots.map(\.name) == [nil, "k-1"])
    #expect(status.binding?.databaseID == Array(1...8))
  }
}
