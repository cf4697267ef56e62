import AccessControl
import ApplicationStore
import DataVault
import DataVaultTesting
import Foundation
import GRDB
import MessagingQueue
import QueueReplication
import ReplicationFixture
import TestSupport
import Testing
import VaultCrypto

/// The store of a node: all nodes have the key of the tables.
private struct StoreNode {
  let node: TestNode
  let store: ApplicationStore

  init(_ shard: TestShard, member: UInt128, _ vault: Vault) async throws {
    node = try await TestNode(shard, member: member) { configuration in
      configuration.serverTables = ApplicationStore.replicatedTables
      configuration.syncInterval = .seconds(300)
      configuration.patience = .seconds(3)
    }
    store = try await ApplicationStore.open(node.engine, vault: vault)
  }

  func names() async throws -> [String] { try await store.applications().map(\.name) }
}

@Suite(.timeLimit(.minutes(10))) struct ReplicatedStoreTests {
  private let vault: Vault
  private let shard: TestShard

  init() async throws {
    let vaults = InMemoryVaultStore()
    let vault = try await FastTestVault.create(
      .messaging, in: vaults, credentials: credentials("secret"))
    self.vault = vault
    // Each home begins with the same empty tables, as if it had copied them.
    shard = try TestShard { _ = try await ApplicationStore.open($0, vault: vault) }
  }

  @Test func `two nodes that add applications at the same time give each its own id`() async throws
  {
    let a = try await StoreNode(shard, member: 1, vault)
    let b = try await StoreNode(shard, member: 2, vault)
    let records = try await withThrowingTaskGroup(of: ApplicationRecord.self) { group in
      for index in 0..<12 {
        let store = index.isMultiple(of: 2) ? a.store : b.store
        group.addTask { try await store.addApplication("app-\(index)") }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(Set(records.map(\.id)).count == 12)
    try await eventually("both have all") {
      let names = try await [a.names(), b.names()]
      return names.allSatisfy { $0.count == 12 }
    }
    #expect(try await a.store.applications() == b.store.applications())
    // Each opens the secret keys that the other has sealed.
    for record in records {
      let own = try await a.store.secretKey(of: record.id)
      let isSame = SecretBytes.isEqual(own, try await b.store.secretKey(of: record.id))
      #expect(isSame)
    }
    await a.node.stop()
    await b.node.stop()
  }

  @Test func `an application that another node has added at the same time exists already`()
    async throws
  {
    let a = try await StoreNode(shard, member: 1, vault)
    let b = try await StoreNode(shard, member: 2, vault)
    let results = await withTaskGroup(of: Result<ApplicationRecord, any Error>.self) { group in
      for store in [a.store, b.store] {
        group.addTask {
          do { return .success(try await store.addApplication("shop")) } catch {
            return .failure(error)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let errors = results.compactMap { result -> ApplicationStoreError? in
      if case .failure(let error) = result { error as? ApplicationStoreError } else { nil }
    }
    #expect(errors.map(\.code) == [.alreadyExists])
    try await eventually("both have it") {
      try await [a.names(), b.names()] == [["shop"], ["shop"]]
    }
    await a.node.stop()
    await b.node.stop()
  }

  @Test func `a directory takes what another node has changed`() async throws {
    let a = try await StoreNode(shard, member: 1, vault)
    let b = try await StoreNode(shard, member: 2, vault)
    let directory = try await ApplicationDirectory.load(b.store)
    let shop = try await a.store.addApplication("shop")
    let channel = try ChannelName("news")
    try await a.store.put([
      try Grant(
        .read, on: Grant.Key(.channel(channel), of: shop.id, holder: .everyone), minutes: 0,
        start: start)
    ])
    try await eventually("the directory has the grant") {
      _ = try await directory.refresh()
      return directory.decide(
        .anonymous, .subscribe, Resource(.channel(channel), of: shop.id), at: start
      ).isAllowed
    }
    try await a.store.removeApplication(shop.id)
    try await eventually("the directory has no application") {
      _ = try await directory.refresh()
      return directory.application(shop.id) == nil
    }
    await a.node.stop()
    await b.node.stop()
  }

  @Test func `a directory drops what was undone, though another change has its generation`()
    async throws
  {
    let a = try await StoreNode(shard, member: 1, vault)
    let b = try await StoreNode(shard, member: 2, vault)
    let directory = try await ApplicationDirectory.load(a.store)
    try await eventually("both read") { shard.log.count > 2 && b.node.node.isCurrent }
    b.node.log.setCutOff(true)
    let count = shard.log.count
    _ = try await a.store.addApplication("lost")
    _ = try await directory.refresh()
    #expect(directory.application(named: "lost") != nil)
    shard.log.setDown(true)
    shard.log.forget(shard.log.count - count)
    a.node.log.setCutOff(true)
    shard.log.setDown(false)
    b.node.log.setCutOff(false)
    _ = try await b.store.addApplication("kept")
    a.node.log.setCutOff(false)
    // What comes back does not fit any more: other rows have its numbers.
    try await eventually("both have the same") {
      try await [a.names(), b.names()] == [["kept"], ["kept"]]
    }
    _ = try await directory.refresh()
    #expect(directory.applications.map(\.record.name) == ["kept"])
    await a.node.stop()
    await b.node.stop()
  }

  @Test func `changes behind one that the log does not answer are refused with it`() async throws {
    let a = try await StoreNode(shard, member: 1, vault)
    try await eventually("it reads") { a.node.node.isCurrent }
    shard.log.setDown(true)
    let errors = await withTaskGroup(of: EngineError?.self) { group in
      for index in 0..<20 {
        group.addTask {
          do throws(ApplicationStoreError) {
            _ = try await a.store.addApplication("app-\(index)")
            return nil
          } catch { return error.underlying as? EngineError }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let unknown = errors.filter { $0?.code == .outcomeUnknown }
    #expect(unknown.count == 1)
    #expect(
      unknown.first??.hint
        == "it takes effect when the brokers answer; look whether it has before you repeat it")
    #expect(errors.count { $0?.code == .busy } == 19)
    shard.log.setDown(false)
    try await eventually("the one takes effect") { try await a.names().count == 1 }
    await a.node.stop()
  }

  @Test func `a home without the tables is refused, and gets none`() async throws {
    let bare = try TestShard()
    let node = try await TestNode(bare, member: 1)
    let error = await #expect(throws: ApplicationStoreError.self) {
      _ = try await ApplicationStore.open(node.engine, vault: vault)
    }
    #expect(error?.code == .damaged)
    #expect(try await node.pool.read { try $0.tableExists("application") } == false)
    await node.stop()
  }

  @Test func `failed logins stay where they happen`() async throws {
    let a = try await StoreNode(shard, member: 1, vault)
    try await eventually("it reads") { a.node.node.isCurrent }
    shard.log.setDown(true)
    let subject = try a.store.keys.realm.attempt(
      by: try Name("ann"), of: try ApplicationID(1001), from: "192.0.2.1")
    try await a.store.saveLoginFailures(
      [LoginLedger.Record(subject.user, failureCount: 3, last: .now)], removing: [])
    #expect(try await a.store.loginFailures().map(\.failureCount) == [3])
    await a.node.stop()
  }
}
