import AccessControl
import Foundation
import Testing

/// When what was allowed ends, and whom a change concerns.
@Suite struct ChangeTests {
  private let key = Principal.authKey(hash("k"))
  private let keyHolder = GrantHolder.authKey(hash("k"))

  @Test func `a grant allows until its last moment and not at its end`() {
    let index = access(grant(.read, on: channel("c"), minutes: 5))
    let decision = index.decide(
      .anonymous, .subscribe, Resource(channel("c"), of: shop), at: start)
    #expect(decision.end == minute(5))
    #expect(index.allows(.subscribe, channel("c"), at: minute(5).addingTimeInterval(-0.001)))
    #expect(!index.allows(.subscribe, channel("c"), at: minute(5)))
  }

  @Test func `a grant for 0 minutes lasts for ever`() {
    let index = access(grant(.read, on: channel("c"), minutes: 0))
    let resource = Resource(channel("c"), of: shop)
    let decision = index.decide(.anonymous, .subscribe, resource, at: .distantFuture)
    #expect(decision.isAllowed)
    #expect(decision.end == nil)
  }

  @Test(arguments: [-1, 525_601, Int.max])
  func `a grant refuses a lifetime out of range`(minutes: Int) {
    let error = #expect(throws: AccessError.self) {
      try Grant(
        .read, on: Grant.Key(.application, of: shop, holder: .everyone), minutes: minutes,
        start: start)
    }
    #expect(error?.code == .invalidGrant)
  }

  @Test func `of several grants the one that lasts longest gives the end`() {
    let index = access(
      grant(.read, on: .application, minutes: 5), grant(.read, on: channel("c"), minutes: 9),
      grant(.read, on: channel("c"), for: keyHolder, minutes: 7))
    let decision = index.decide(key, .subscribe, Resource(channel("c"), of: shop), at: start)
    #expect(decision.end == minute(9))
    #expect(decision.reason == .grantForEveryone(.name))
  }

  @Test func `of grants without an end the broadest gives the reason`() {
    let index = access(
      grant(.read, on: .application), grant(.read, on: channel("c")),
      grant(.read, on: channel("c"), for: keyHolder))
    #expect(
      index.reason(key, .subscribe, channel("c")) == .grantForEveryone(.application))
  }

  @Test func `a grant replaces the whole entry for its holder and scope`() {
    var index = access(grant([.read, .write], on: channel("c"), minutes: 5))
    #expect(index.put(grant(.write, on: channel("c"))) == .everyone(of: shop))
    #expect(!index.allows(.subscribe, channel("c")))
    #expect(index.allows(.publish, channel("c"), at: minute(100)))
    #expect(index.grantCount == 1)
  }

  @Test func `a grant without rights removes the entry`() {
    var index = access(grant(.read, on: channel("c"), for: keyHolder))
    #expect(
      index.put(grant([], on: channel("c"), for: keyHolder)) == .holder(keyHolder, of: shop))
    #expect(!index.allows(key, .subscribe, channel("c")))
    #expect(index.grantCount == 0)
    #expect(index.put(grant([], on: channel("c"), for: keyHolder)) == nil)
  }

  @Test func `the same grant for a second time changes nothing`() {
    var index = access(grant(.read, on: channel("c"), minutes: 5))
    #expect(index.put(grant(.read, on: channel("c"), minutes: 5)) == nil)
    #expect(index.put(grant(.read, on: channel("c"), minutes: 6)) == .everyone(of: shop))
  }

  @Test func `expire() removes what has ended and names whom it concerns`() {
    var index = access(
      grant(.read, on: channel("c"), minutes: 5),
      grant(.read, on: .application, minutes: 9),
      grant(.read, on: channel("c"), for: keyHolder, minutes: 5),
      grant(.read, on: channel("a.*"), minutes: 0))
    #expect(index.nextEnd == minute(5))
    #expect(index.expire(at: minute(4)) == [])
    #expect(index.expire(at: minute(5)) == [.everyone(of: shop), .holder(keyHolder, of: shop)])
    #expect(index.grantCount == 2)
    #expect(index.nextEnd == minute(9))
    #expect(index.expire(at: minute(9)) == [.everyone(of: shop)])
    #expect(index.nextEnd == nil)
    #expect(index.grantCount == 1)
  }

  @Test func `expire() leaves a grant that was renewed`() {
    var index = access(grant(.read, on: channel("c"), minutes: 5))
    index.put(grant(.read, on: channel("c"), minutes: 5, from: minute(3)))
    #expect(index.expire(at: minute(6)) == [])
    #expect(index.allows(.subscribe, channel("c"), at: minute(7)))
    #expect(index.expire(at: minute(8)) == [.everyone(of: shop)])
  }

  @Test func `a grant that is renewed 10,000 times leaves no trace behind`() {
    var index = access()
    for number in 0..<10_000 {
      index.put(grant(.read, on: channel("c"), minutes: 5, from: minute(Double(number) / 1e4)))
    }
    #expect(index.endingCapacity < 3000)
    #expect(index.grantCount == 1)
    #expect(index.expire(at: minute(10)) == [.everyone(of: shop)])
  }

  @Test func `a revoked token is refused, whatever else is granted`() throws {
    var index = access(grant(.all, on: .application), isOpen: true)
    let token = try token(TokenRights(channels: [TokenRights.Entry("c", .read)]))
    let bearer = Principal.token(token, userID: nil)
    #expect(index.allows(bearer, .subscribe, channel("c")))
    let change = index.revoke(token.digest, of: shop, until: token.end)
    #expect(change == .token(token.digest, of: shop))
    #expect(index.reason(bearer, .subscribe, channel("c")) == .tokenRevoked)
    #expect(index.revoke(token.digest, of: shop, until: token.end) == nil)
    #expect(index.expire(at: token.end) == [])
    #expect(index.nextEnd == nil)
    #expect(index.reason(bearer, .subscribe, channel("c"), at: token.end) == .tokenExpired)
  }

  @Test func `a change concerns the callers whose decision it can change`() throws {
    let token = try token()
    let bearer = Principal.token(token, userID: nil)
    let everyone = AccessChange.everyone(of: shop)
    #expect(everyone.concerns(.anonymous, in: shop))
    #expect(everyone.concerns(key, in: shop))
    #expect(!everyone.concerns(bearer, in: shop))
    #expect(!everyone.concerns(.anonymous, in: bank))
    let holder = AccessChange.holder(keyHolder, of: shop)
    #expect(holder.concerns(key, in: shop))
    #expect(!holder.concerns(.anonymous, in: shop))
    #expect(!holder.concerns(.authKey(hash("l")), in: shop))
    #expect(!holder.concerns(key, in: bank))
    let revocation = AccessChange.token(token.digest, of: shop)
    #expect(revocation.concerns(bearer, in: shop))
    #expect(!revocation.concerns(key, in: shop))
    #expect(AccessChange.application(shop).concerns(bearer, in: shop))
    #expect(!AccessChange.application(shop).concerns(bearer, in: bank))
  }

  @Test func `a removed application takes its grants and revocations with it`() throws {
    var index = access(grant(.read, on: channel("c"), minutes: 5), grant(.read, on: .application))
    index.revoke(try token().digest, of: shop, until: minute(5))
    index.put(application(bank, name: "bank"))
    index.put(grant(.read, on: .application, of: bank))
    #expect(index.removeApplication(shop) == .application(shop))
    #expect(index.removeApplication(shop) == nil)
    #expect(index.reason(.subscribe, channel("c")) == .unknownApplication)
    #expect(index.grantCount == 1)
    #expect(index.expire(at: minute(6)) == [])
    index.put(application())
    #expect(!index.allows(.subscribe, channel("c")))
  }

  @Test func `an application that is closed refuses from then on`() {
    var index = access(isOpen: true)
    #expect(index.allows(.publish, channel("c")))
    #expect(index.put(application()) == .application(shop))
    #expect(!index.allows(.publish, channel("c")))
  }

  @Test func `grants(of:) returns what was put`() {
    let grants = [
      grant(.read, on: .application, minutes: 5), grant(.write, on: channel("c")),
      grant(.manage, on: group("g"), for: keyHolder, minutes: 7),
    ]
    var index = access()
    for grant in grants { index.put(grant) }
    #expect(Set(index.grants(of: shop)) == Set(grants))
    #expect(index.grants(of: shop, holder: keyHolder) == [grants[2]])
    #expect(index.grants(of: bank).isEmpty)
  }

  @Test func `a decision explains itself without an auth key`() {
    let index = access(grant(.read, on: channel("c"), for: keyHolder, minutes: 5))
    let resource = Resource(channel("c"), of: shop)
    let allowed = index.decide(key, .subscribe, resource, at: start)
    #expect(
      allowed.explanation(of: .subscribe, on: resource)
        == "subscribe on channel 'c' is allowed until 2023-11-14T22:18:20Z: a grant of read on "
        + "channel 'c' for this caller")
    let refused = index.decide(.anonymous, .publish, resource, at: start)
    #expect(
      refused.explanation(of: .publish, on: resource)
        == "publish on channel 'c' is refused: nothing gives this caller write")
  }
}
