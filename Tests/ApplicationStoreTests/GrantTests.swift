import AccessControl
@testable import ApplicationStore
import Foundation
import Testing

@Suite struct GrantTests {
  let fixture: StoreFixture
  let store: ApplicationStore
  let shop: ApplicationID

  init() async throws {
    fixture = try await StoreFixture()
    store = try await fixture.store {
      $0.grantCount = 5
      $0.totalGrantCount = 8
    }
    shop = try await store.addApplication("shop").id
  }

  private func read(
    _ scope: Scope, for holder: GrantHolder = .everyone, minutes: Int = 0
  ) -> Grant {
    grant(.read, on: scope, for: holder, minutes: minutes, of: shop)
  }

  private func code(_ body: () async throws -> Void) async -> ApplicationStoreError.Code? {
    await ApplicationStoreTests.code(body)
  }

  @Test(arguments: [
    Scope.application, .channel(channel("ä.*-pnpres")), .group(.all), .user(name("u")),
    .consumer(name("worker/1"), of: channel("jobs")),
  ])
  func `a grant comes back as it was stored, for each kind of scope and holder`(
    scope: Scope
  ) async throws {
    let grants = [.everyone, store.holder("key", of: shop), .user(name("é"))].map {
      grant([.write, .lease], on: scope, for: $0, minutes: 525_600, of: shop)
    }
    try await store.put(grants)
    #expect(try await store.grants(of: shop) == grants)
  }

  @Test
  func `a grant replaces the one for its holder and scope, and one without rights removes it`()
    async throws
  {
    try await store.put([read(.application, minutes: 5)])
    let second = grant(.all, on: .application, from: minute(1), of: shop)
    try await store.put([second])
    #expect(try await store.grants(of: shop) == [second])
    try await store.put([
      grant([], on: .application, of: shop), grant([], on: .group(.all), of: shop),
    ])
    #expect(try await store.grants(of: shop).isEmpty)
    #expect(try await fixture.wrongCounts() == 0)
  }

  @Test func `put() stores all grants or none`() async throws {
    let missing = try ApplicationID(7)
    let grants = [read(.application), grant(.read, on: .application, of: missing)]
    #expect(await code { try await store.put(grants) } == .unknownApplication)
    #expect(try await store.grants(of: shop).isEmpty)
    #expect(try await fixture.number("SELECT count(*) FROM application_change") == 1)
  }

  @Test func `removeGrant() removes the grant with an id, which a renewal keeps`() async throws {
    let holder = store.holder("key", of: shop)
    try await store.put([read(.application), read(.application, for: holder)])
    let id = try GrantID(Grant.Key(.application, of: shop, holder: holder))
    try await store.put([read(.application, for: holder, minutes: 9)])
    try await store.removeGrant(try #require(GrantID("\(id)".uppercased())), of: shop)
    #expect(try await store.grants(of: shop) == [read(.application)])
    #expect(await code { try await store.removeGrant(id, of: shop) } == .unknownGrant)
    #expect(try await fixture.wrongCounts() == 0)
    #expect(GrantID("0123456789abcde") == nil && GrantID("0123456789abcdeg") == nil)
  }

  @Test func `an application has at most as many grants and revoked tokens as the limits allow`()
    async throws
  {
    try await store.revoke(digest(1), of: shop, until: minute(9))
    try await store.put((1...4).map { read(.channel(channel("\($0)"))) })
    #expect(await code { try await store.put([read(.application)]) } == .tooManyGrants)
    let revoking = await code { try await store.revoke(digest(2), of: shop, until: minute(9)) }
    #expect(revoking == .tooManyGrants)
    // A renewal, and a grant in the place of another, need no room.
    try await store.put([read(.channel(channel("1")), minutes: 5)])
    try await store.put([grant([], on: .channel(channel("1")), of: shop), read(.application)])
    #expect(try await store.grants(of: shop).count == 4)
    #expect(try await fixture.wrongCounts() == 0)
  }

  @Test func `all applications together have at most as many grants as the limits allow`()
    async throws
  {
    let bank = try await store.addApplication("bank").id
    try await store.put((1...5).map { read(.channel(channel("\($0)"))) })
    let grants = (1...4).map { grant(.read, on: .channel(channel("\($0)")), of: bank) }
    #expect(await code { try await store.put(grants) } == .tooManyGrants)
    try await store.put(Array(grants.prefix(3)))
  }

  @Test func `grants that have ended are not listed, and make room for others`() async throws {
    try await store.put((1...4).map { read(.channel(channel("\($0)")), minutes: 5) })
    try await store.revoke(digest(1), of: shop, until: minute(5))
    fixture.now = minute(5).addingTimeInterval(-0.001)
    #expect(try await store.grants(of: shop).count == 4)
    #expect(try await store.removeEnded() == 0)
    fixture.now = minute(5)
    #expect(try await store.grants(of: shop).isEmpty)
    try await store.put([read(.application)])
    #expect(try await store.removeEnded() == 0)
    #expect(try await fixture.number("SELECT count(*) FROM application_grant") == 1)
    #expect(try await fixture.number("SELECT count(*) FROM application_revocation") == 0)
    #expect(try await fixture.wrongCounts() == 0)
  }

  @Test func `revoke() of a revoked token changes nothing`() async throws {
    try await store.revoke(digest(1), of: shop, until: minute(5))
    try await store.revoke(digest(1), of: shop, until: minute(9))
    #expect(try await fixture.wrongCounts() == 0)
    #expect(try await fixture.number("SELECT count(*) FROM application_change") == 2)
  }
}
