import AccessControl
@testable import ApplicationStore
import Foundation
import TestSupport
import Testing
import VaultCrypto

@Suite struct ApplicationTests {
  @Test func `addApplication() makes keys and a secret key in PubNub's forms`() async throws {
    let fixture = try await StoreFixture()
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop")
    let uuid = #/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/#
    #expect(shop.publishKey.dropFirst(6).wholeMatch(of: uuid) != nil)
    #expect(shop.publishKey.hasPrefix("pub-c-") && shop.subscribeKey.hasPrefix("sub-c-"))
    #expect(shop.subscribeKey.dropFirst(6).wholeMatch(of: uuid) != nil)
    #expect(!shop.isOpen && shop.retention == .standard && shop.created == start)
    let secretKey = try await store.secretKey(of: shop.id).text()
    #expect(secretKey.wholeMatch(of: /sec-c-[A-Za-z0-9_-]{43}/) != nil)
    #expect(try await store.applications() == [shop])
    #expect(try await store.application(named: "shop") == shop)
  }

  @Test func `applications, grants and groups are there after the engine is opened again`()
    async throws
  {
    let fixture = try await StoreFixture()
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop", isOpen: true)
    let secretKey = try await store.secretKey(of: shop.id).text()
    let read = grant(.read, on: .channel(channel("a")), of: shop.id)
    try await store.put([read])
    try await store.add([channel("a")], to: group("g"), of: shop.id)
    let second = try await fixture.neighbour()
    #expect(try await second.applications() == [shop])
    #expect(try await second.secretKey(of: shop.id).text() == secretKey)
    #expect(try await second.grants(of: shop.id) == [read])
    #expect(try await second.groups(of: shop.id) == [group("g"): [channel("a")]])
  }

  @Test func `an id is counted, and never used again`() async throws {
    let store = try await StoreFixture().store()
    let first = try await store.addApplication("a").id
    let second = try await store.addApplication("b").id
    #expect([first.number, second.number] == [1001, 1002])
    try await store.removeApplication(second)
    #expect(try await store.addApplication("b").id.number == 1003)
  }

  @Test func `a name is taken once, and must keep to the rule`() async throws {
    let store = try await StoreFixture().store()
    _ = try await store.addApplication("shop")
    #expect(await code { _ = try await store.addApplication("shop") } == .alreadyExists)
    for name in ["", "Shop", "a/b", String(repeating: "a", count: 33)] {
      #expect(await code { _ = try await store.addApplication(name) } == .invalidArgument)
    }
    #expect(try await store.applications().count == 1)
  }

  @Test func `there are at most as many applications as the limits allow`() async throws {
    let store = try await StoreFixture().store { $0.applicationCount = 2 }
    _ = try await store.addApplication("a")
    _ = try await store.addApplication("b")
    #expect(await code { _ = try await store.addApplication("c") } == .tooManyApplications)
  }

  @Test func `removeApplication() removes all rows of the application, and no other`()
    async throws
  {
    let fixture = try await StoreFixture()
    let store = try await fixture.store()
    for name in ["shop", "bank"] {
      let id = try await store.addApplication(name).id
      try await store.put([grant(.read, on: .application, of: id)])
      try await store.revoke(digest(1), of: id, until: minute(9))
      try await store.add([channel("a")], to: group("g"), of: id)
    }
    try await store.removeApplication(store.application(named: "shop").id)
    for table in ["", "_grant", "_revocation", "_group"] {
      #expect(try await fixture.number("SELECT count(*) FROM application\(table)") == 1)
    }
    #expect(await code { _ = try await store.application(named: "shop") } == .unknownApplication)
  }

  @Test func `setOpen() and setRetention() change an application that exists`() async throws {
    let store = try await StoreFixture().store()
    var shop = try await store.addApplication("shop")
    try await store.setOpen(true, of: shop.id)
    let retention = try ApplicationRetention(maximumMinutes: 60, maximumByteCount: 1 << 20)
    try await store.setRetention(retention, of: shop.id)
    shop.isOpen = true
    shop.retention = retention
    #expect(try await store.applications() == [shop])
    let missing = try ApplicationID(7)
    #expect(await code { try await store.setOpen(true, of: missing) } == .unknownApplication)
    #expect(await code { try await store.removeApplication(missing) } == .unknownApplication)
    #expect(await code { _ = try await store.secretKey(of: missing) } == .unknownApplication)
    #expect(await code { _ = try await store.grants(of: missing) } == .unknownApplication)
    #expect(await code { _ = try await store.groups(of: missing) } == .unknownApplication)
    for limits in [(0, 1), (5_256_001, 1), (1, 0), (1, 1 << 53)] {
      #expect(throws: ApplicationStoreError.self) {
        try ApplicationRetention(maximumMinutes: limits.0, maximumByteCount: limits.1)
      }
    }
  }
}
