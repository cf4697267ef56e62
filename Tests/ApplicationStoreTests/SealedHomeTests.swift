import AccessControl
@testable import ApplicationStore
import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import MessagingQueue
import TestSupport
import Testing
import VaultCrypto
import VaultedDatabase

/// The store in a home of its own: a sealed database, and a vault in a file.
@Suite struct SealedHomeTests {
  let scratch = ScratchFolder()
  let home: DataVaultHome

  init() {
    home = DataVaultHome(scratch.path, vaultParameters: .cheap)
  }

  private func unlockedVault() async throws -> Vault {
    let vault = try await FastTestVault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials("secret"))
    return vault
  }

  private func withStore<Result>(
    _ body: (ApplicationStore) async throws -> Result
  ) async throws -> Result {
    let vault = try await unlockedVault()
    let engine = try await MessagingEngine.start(home, vault: vault)
    do {
      let result = try await body(ApplicationStore.open(engine, vault: vault))
      try await engine.stop()
      return result
    } catch {
      try? await engine.stop()
      throw error
    }
  }

  @Test func `a grant is there after a restart, and no file of the home shows it`() async throws {
    _ = try await FastTestVault.create(
      .messaging, in: home.store, credentials: credentials("secret"))
    let (shop, secretKey) = try await withStore { store in
      let shop = try await store.addApplication("shop-of-a-restart")
      try await store.put([grant(.read, on: .channel(channel("restarted")), of: shop.id)])
      let key = try await store.secretKey(of: shop.id).text()
      return (shop, key)
    }
    try await withStore { store in
      #expect(try await store.applications() == [shop])
      #expect(try await store.secretKey(of: shop.id).text() == secretKey)
      let directory = try await ApplicationDirectory.load(store)
      let resource = Resource(.channel(channel("restarted")), of: shop.id)
      #expect(directory.decide(.anonymous, .subscribe, resource, at: start).isAllowed)
    }
    for name in try scratch.names() where name.hasPrefix("messaging") {
      let bytes = Data(try scratch.bytes(name))
      for text in ["shop-of-a-restart", "restarted", secretKey, shop.subscribeKey] {
        #expect(bytes.firstRange(of: Data(text.utf8)) == nil)
      }
    }
  }

  @Test func `the engine's lock ends the store's calls with an error of the engine`() async throws {
    let vault = try await FastTestVault.create(
      .messaging, in: home.store, credentials: credentials("secret"))
    let engine = try await MessagingEngine.start(home, vault: vault)
    let store = try await ApplicationStore.open(engine, vault: vault)
    let shop = try await store.addApplication("shop").id
    await vault.lock()
    let error = await #expect(throws: ApplicationStoreError.self) {
      try await store.setOpen(true, of: shop)
    }
    #expect(error?.code == .engine && (error?.underlying as? EngineError)?.code == .vaultLocked)
    try await withStore { store in
      let isOpen = try await store.application(named: "shop").isOpen
      #expect(!isOpen)
    }
  }

  @Test func `new keys of the vault keep the store`() async throws {
    let vault = try await FastTestVault.create(
      .messaging, in: home.store, credentials: .standard)
    let engine = try await MessagingEngine.start(home, vault: vault)
    let shop = try await ApplicationStore.open(engine, vault: vault).addApplication("shop")
    try await engine.stop()
    try await VaultedDatabase.secure(home, with: credentials("secret"))
    try await withStore { store in
      let byteCount = try await store.secretKey(of: shop.id).byteCount
      #expect(byteCount == 49)
    }
  }
}
