import AccessControl
@testable import ApplicationStore
import Foundation
import TestSupport
import Testing
import VaultCrypto

/// What a server sees of the tables in memory, and how it learns of changes.
@Suite struct DirectoryTests {
  let fixture: StoreFixture
  let store: ApplicationStore
  let shop: ApplicationRecord
  let directory: ApplicationDirectory

  init() async throws {
    fixture = try await StoreFixture()
    store = try await fixture.store()
    shop = try await store.addApplication("shop")
    directory = try await ApplicationDirectory.load(store)
  }

  private func allows(
    _ operation: AccessOperation, _ name: String, as principal: Principal = .anonymous
  ) -> Bool {
    directory.decide(
      principal, operation, Resource(.channel(channel(name)), of: shop.id), at: fixture.now
    ).isAllowed
  }

  @Test func `an application is found by each of its names, and opens with its secret key`()
    async throws
  {
    let found = [
      directory.application(shop.id), directory.application(named: "shop"),
      directory.application(subscribeKey: shop.subscribeKey),
      directory.application(publishKey: shop.publishKey), directory.applications.first,
    ]
    #expect(found.allSatisfy { $0?.record == shop })
    #expect(directory.application(named: shop.subscribeKey) == nil)
    #expect(directory.application(subscribeKey: "") == nil)
    // The signer of a second process reads its tokens.
    let second = try await ApplicationDirectory.load(fixture.neighbour())
    let contents = try TokenContents(
      issue: start, minutes: 5, resources: TokenRights(channels: [.init("a", .read)]))
    let text = try #require(directory.application(shop.id)).signer.issue(contents)
    let reading = try #require(second.application(shop.id)).signer.read(Array(text.utf8))
    guard case .token(let token) = reading else {
      Issue.record("the token is not read")
      return
    }
    #expect(allows(.subscribe, "a", as: .token(token, userID: nil)))
    try await store.revoke(token.digest, of: shop.id, until: token.end)
    #expect(try await directory.refresh().access == [.token(token.digest, of: shop.id)])
    #expect(!allows(.subscribe, "a", as: .token(token, userID: nil)))
  }

  @Test func `refresh() applies a grant of another process and names its holder`() async throws {
    let other = try await fixture.neighbour()
    let hash = try directory.hash(Array("key".utf8), of: shop.id)
    let holder = other.holder("key", of: shop.id)
    #expect(holder == .authKey(hash))
    try await other.put([
      grant(.read, on: .channel(channel("a")), for: holder, minutes: 5, of: shop.id)
    ])
    #expect(!allows(.subscribe, "a", as: .authKey(hash)))
    let changes = try await directory.refresh()
    #expect(changes == DirectoryChanges(access: [.holder(holder, of: shop.id)]))
    #expect(allows(.subscribe, "a", as: .authKey(hash)) && !allows(.subscribe, "a"))
    #expect(try await directory.refresh().isEmpty)
    #expect(directory.nextEnd == minute(5))
    try await other.put([grant([], on: .channel(channel("a")), for: holder, of: shop.id)])
    #expect(try await directory.refresh().access == [.holder(holder, of: shop.id)])
    #expect(!allows(.subscribe, "a", as: .authKey(hash)))
  }

  @Test func `a grant that ends by time is named once, by expire() or refresh()`() async throws {
    for minutes in [5, 6] {
      try await store.put([
        grant(.read, on: .channel(channel("\(minutes)")), minutes: minutes, of: shop.id)
      ])
    }
    _ = try await directory.refresh()
    fixture.now = minute(5)
    #expect(directory.expire() == [.everyone(of: shop.id)])
    #expect(directory.expire().isEmpty)
    fixture.now = minute(6)
    #expect(try await directory.refresh().access == [.everyone(of: shop.id)])
    #expect(directory.nextEnd == nil)
  }

  @Test func `an application that is opened, closed or removed changes for everyone`()
    async throws
  {
    let other = try await fixture.neighbour()
    try await other.setOpen(true, of: shop.id)
    #expect(try await directory.refresh().access == [.application(shop.id)])
    #expect(allows(.publish, "a"))
    try await other.put([grant(.all, on: .application, of: shop.id)])
    try await other.add([channel("a")], to: group("g"), of: shop.id)
    try await other.removeApplication(shop.id)
    let bank = try await other.addApplication("shop")
    #expect(
      try await directory.refresh().access == [.application(shop.id), .application(bank.id)])
    #expect(!allows(.publish, "a") && directory.withIndex { $0.grantCount } == 0)
    #expect(directory.application(subscribeKey: shop.subscribeKey) == nil)
    #expect(directory.application(named: "shop")?.record == bank)
    #expect(directory.groups(of: shop.id).isEmpty)
  }

  @Test func `groups that change are named, with their channels at hand`() async throws {
    let changed = DirectoryChanges(groups: [.init(application: shop.id, name: group("g"))])
    try await store.add([channel("a"), channel("b")], to: group("g"), of: shop.id)
    #expect(try await directory.refresh() == changed)
    #expect(directory.channels(of: group("g"), of: shop.id) == [channel("a"), channel("b")])
    try await store.remove([channel("a")], from: group("g"), of: shop.id)
    #expect(try await directory.refresh() == changed)
    #expect(directory.groups(of: shop.id) == [group("g")])
    try await store.removeGroup(group("g"), of: shop.id)
    #expect(try await directory.refresh() == changed)
    #expect(directory.groups(of: shop.id).isEmpty)
    #expect(directory.channels(of: group("g"), of: shop.id).isEmpty)
  }

  @Test func `a directory that is too far behind loads everything and names everything`()
    async throws
  {
    let other = try await fixture.neighbour { $0.changeCount = 2 }
    let bank = try await other.addApplication("bank").id
    for name in ["a", "b", "c"] {
      try await other.put([grant(.read, on: .channel(channel(name)), of: shop.id)])
    }
    try await other.add([channel("a")], to: group("g"), of: shop.id)
    let changes = try await directory.refresh()
    #expect(changes.access == [.application(shop.id), .application(bank)])
    #expect(changes.groups == [.init(application: shop.id, name: group("g"))])
    #expect(allows(.subscribe, "a") && allows(.subscribe, "c"))
    #expect(try await directory.refresh().isEmpty)
  }

  @Test func `refreshes that run together name each change once`() async throws {
    for round in 0..<10 {
      try await store.put([
        grant(.read, on: .channel(channel("\(round)")), of: shop.id)
      ])
      let found = try await withThrowingTaskGroup(of: DirectoryChanges.self) { tasks in
        for _ in 0..<4 { tasks.addTask { [directory] in try await directory.refresh() } }
        return try await tasks.reduce(into: [DirectoryChanges]()) { $0.append($1) }
      }
      #expect(found.filter { !$0.isEmpty } == [DirectoryChanges(access: [.everyone(of: shop.id)])])
    }
  }

  @Test func `what was read before another refresh is not applied after it`() async throws {
    try await store.setOpen(true, of: shop.id)
    let old = try await directory.news()
    try await store.setOpen(false, of: shop.id)
    _ = try await directory.refresh()
    #expect(directory.apply(old) == nil)
    #expect(!allows(.publish, "a"))
  }
}
