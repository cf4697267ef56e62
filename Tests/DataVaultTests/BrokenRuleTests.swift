import DataVault
import DataVaultTesting
import Testing
import VaultCrypto

@Suite struct BrokenRuleTests {
  @Test(arguments: BrokenRule.all)
  func `a file that breaks one rule is damaged`(rule: BrokenRule) async throws {
    let store = InMemoryVaultStore()
    store[.messaging] = try rule.file()
    let vault = try await FastTestVault.get(.messaging, in: store)
    var failure: VaultError?
    do throws(VaultError) {
      try await vault.unlock(with: credentials("password"))
    } catch {
      failure = error
    }
    #expect(failure?.code == .damaged, "\(String(describing: failure))")
    #expect(await vault.isLocked)
    // Most rules hold before any password is tried.
    if rule.needsNoPassword {
      #expect(await code { _ = try await vault.status() } == .damaged)
    }
  }

  @Test func `what is repaired about the rules opens`() async throws {
    let store = InMemoryVaultStore()
    var forge = VaultFileBuilder()
    forge.binding = #"{"database":"AQIDBAUGBwg","state":"bound"}"#
    forge.databases =
      #"{"current":"\#(Base64.url(Array(1...32)))","pending":"\#(Base64.url(Array(2...33)))","#
      + #""anchor":{"id":"AQIDBAUGBwgJCgsMDQ4PEA","commit":17}}"#
    forge.items = #"{"\u0061\ud83d\ude00":{"string":"\b\f\n\r\t\/\"\\\u00e4"},"b":{"binary":""}}"#
    forge.extraSlots =
      #",{"header":{"alg":"A256KW","kid":"keyfile:k-1"},"encrypted_key":"\#(Base64.url(Array(1...40)))"}"#
    store[.messaging] = try forge.file()
    let vault = try await FastTestVault.get(.messaging, in: store)
    try await vault.unlock(with: credentials("password"))
    #expect(try await vault.text("a😀") == "\u{8}\u{C}\n\r\t/\"\\ä")
    #expect(try await vault.item("b").bytes.byteCount == 0)
    // And what this version does not use yet survives a write.
    try await vault.setText("x", for: "c")
    let status = try await vault.status()
    #expect(status.slots.map(\.kind) == [.password, .keyFile])
    #expect(status.slots.map(\.name) == [nil, "k-1"])
    #expect(status.binding?.databaseID == Array(1...8))
  }
}
