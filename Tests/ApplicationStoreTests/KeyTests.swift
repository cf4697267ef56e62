import AccessControl
@testable import ApplicationStore
import DataVault
import DataVaultTesting
import Foundation
import TestSupport
import Testing
import VaultCrypto

/// The item of the vault, what is made of it, and what happens without it.
@Suite struct KeyTests {
  let fixture: StoreFixture

  init() async throws { fixture = try await StoreFixture() }

  @Test func `processes that open the store together agree on one key`() async throws {
    for _ in 0..<10 {
      let fixture = try await StoreFixture()
      let checks = try await withThrowingTaskGroup(of: [UInt8].self) { tasks in
        for _ in 0..<6 {
          tasks.addTask { try await fixture.neighbour().keys.check }
        }
        return try await tasks.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
      }
      #expect(checks.count == 1)
    }
  }

  @Test func `a later open uses the same item`() async throws {
    let first = try await fixture.store().keys.check
    let item = try await fixture.vault.item(ApplicationKeys.itemName)
    let second = try await fixture.neighbour().keys.check
    let isSame = SecretBytes.isEqual(
      item.bytes, try await fixture.vault.item(ApplicationKeys.itemName).bytes)
    #expect(first == second && isSame)
    #expect(item.kind == .binary && item.bytes.byteCount == 32)
  }

  @Test func `a lost item is an error with a hint, and no new key is made`() async throws {
    _ = try await fixture.store()
    try await fixture.vault.removeItem(ApplicationKeys.itemName)
    do {
      _ = try await fixture.neighbour()
      Issue.record("the store was opened without its key")
    } catch let error as ApplicationStoreError {
      #expect(error.code == .keyMissing)
      #expect(error.message.contains("'datavaultd-key'") && error.hint?.contains("backup") == true)
    }
    #expect(try await fixture.vault.itemNames().isEmpty)
  }

  @Test(arguments: [VaultItem.Kind.binary, .string], [31, 32])
  func `another item in its place is refused`(kind: VaultItem.Kind, byteCount: Int) async throws {
    _ = try await fixture.store()
    let other = SecretBytes(copying: [UInt8](repeating: 65, count: byteCount))
    try await fixture.vault.set(other, kind: kind, for: ApplicationKeys.itemName)
    #expect(await code { _ = try await fixture.neighbour() } == .wrongKey)
  }

  @Test func `a locked vault is an error of the vault`() async throws {
    let vault = fixture.vault
    await vault.lock()
    let error = await #expect(throws: ApplicationStoreError.self) {
      _ = try await ApplicationStore.open(fixture.engine, vault: vault)
    }
    #expect(error?.code == .vault && (error?.underlying as? VaultError)?.code == .locked)
  }

  @Test func `no cell of the tables has a secret key or an auth key`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop")
    let authKey = "an auth key of a client"
    try await store.put([
      grant(.read, on: .application, for: store.holder(authKey, of: shop.id), of: shop.id)
    ])
    try await store.add([channel("a")], to: group("g"), of: shop.id)
    try await store.revoke(digest(1), of: shop.id, until: minute(5))
    let secretKey = try await store.secretKey(of: shop.id).text()
    let item = try await fixture.vault.item(ApplicationKeys.itemName).bytes.array()
    let random = try #require(Data(base64URL: String(secretKey.dropFirst(6))))
    let cells = try await fixture.cells()
    #expect(cells.contains(Data("shop".utf8)) && cells.contains(Data(digest(1).bytes)))
    for secret in [Data(secretKey.utf8), random, Data(authKey.utf8), Data(item)] {
      #expect(!cells.contains { $0.firstRange(of: secret) != nil })
    }
  }

  @Test func `a sealed secret key opens in no other row`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let bank = try await store.addApplication("bank").id
    let sealed = "(SELECT secret_key FROM application WHERE id = \(bank))"
    try await fixture.execute("UPDATE application SET secret_key = \(sealed) WHERE id = \(shop)")
    #expect(await code { _ = try await store.secretKey(of: shop) } == .damaged)
    #expect(await code { _ = try await ApplicationDirectory.load(store) } == .damaged)
    _ = try await store.secretKey(of: bank)
    try await fixture.execute("UPDATE application SET name = 'bang' WHERE id = \(bank)")
    #expect(await code { _ = try await store.secretKey(of: bank) } == .damaged)
    try await fixture.execute("UPDATE application SET secret_key = x'0102' WHERE id = \(bank)")
    #expect(await code { _ = try await store.secretKey(of: bank) } == .damaged)
  }

  @Test func `two sealings of one secret key have no byte string in common`() throws {
    let keys = try ApplicationKeys(item: secret(String(repeating: "k", count: 32)), random: .system)
    let id = try ApplicationID(1001)
    let first = try keys.seal(secret("sec-c-key"), of: id, name: "shop")
    let second = try keys.seal(secret("sec-c-key"), of: id, name: "shop")
    #expect(first.count == 24 + 9 + 16 && first.prefix(24) != second.prefix(24))
    #expect(first[24..<33] != second[24..<33])
    #expect(try keys.open(first, of: id, name: "shop").text() == "sec-c-key")
  }
}

extension Data {
  fileprivate init?(base64URL text: String) {
    let padded = text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    self.init(
      base64Encoded: padded.replacing("-", with: "+").replacing("_", with: "/"))
  }
}
