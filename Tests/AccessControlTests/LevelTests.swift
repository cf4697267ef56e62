import AccessControl
import Foundation
import Testing

/// The levels of version 2, and what each covers.
@Suite struct LevelTests {
  private let key = Principal.authKey(hash("k"))
  private let keyHolder = GrantHolder.authKey(hash("k"))

  @Test func `without a grant nothing is allowed`() {
    for operation in AccessOperation.allCases {
      for scope in [channel("c"), group("g"), .application, consumer("w", of: "c")] {
        #expect(!access().allows(operation, scope))
        #expect(!access().allows(key, operation, scope))
      }
    }
  }

  @Test func `hasRight() finds any grant that counts for a principal and has not ended`() throws {
    let user = Principal.user(made(try Name("ann")))
    let role = GrantHolder.role(made(try Name("staff")))
    for principal in [.anonymous, key, user, .signed(bank)] {
      #expect(!access().hasRight(principal, in: shop, at: start))
    }
    #expect(access().hasRight(.signed(shop), in: shop, at: start))
    #expect(access(isOpen: true).hasRight(.anonymous, in: shop, at: start))
    #expect(!access(isOpen: true).hasRight(.anonymous, in: bank, at: start))
    let brief = access(grant(.read, on: channel("c"), minutes: 5))
    #expect(brief.hasRight(.anonymous, in: shop, at: minute(4)))
    #expect(!brief.hasRight(.anonymous, in: shop, at: minute(5)))
    let keyed = access(grant(.read, on: .application, for: keyHolder))
    #expect(keyed.hasRight(key, in: shop, at: start))
    #expect(!keyed.hasRight(.anonymous, in: shop, at: start))
    var staffed = access(grant(.lease, on: channel("c"), for: role))
    #expect(!staffed.hasRight(user, in: shop, at: start))
    staffed.put(user: made(try Name("ann")), roles: [made(try Name("staff"))], of: shop)
    #expect(staffed.hasRight(user, in: shop, at: start))
  }

  @Test func `a grant on the application covers every channel and group`() {
    let index = access(grant(.read, on: .application))
    #expect(index.allows(.subscribe, channel("c")))
    #expect(index.allows(.subscribe, channel("c-pnpres")))
    #expect(index.allows(.subscribe, group("g")))
    #expect(index.allows(key, .history, channel("d")))
    #expect(!index.allows(.publish, channel("c")))
  }

  @Test func `a grant on a channel covers that channel for everyone`() {
    let index = access(grant(.write, on: channel("c")))
    #expect(index.allows(.publish, channel("c")))
    #expect(index.allows(key, .publish, channel("c")))
    #expect(!index.allows(.publish, channel("d")))
    #expect(!index.allows(.subscribe, group("c")))
  }

  @Test func `a grant with an auth key covers that key alone`() {
    let index = access(grant(.write, on: channel("c"), for: keyHolder))
    #expect(index.allows(key, .publish, channel("c")))
    #expect(!index.allows(.publish, channel("c")))
    #expect(!index.allows(.authKey(hash("l")), .publish, channel("c")))
    #expect(!index.allows(.user(made(try Name("k"))), .publish, channel("c")))
  }

  @Test func `a grant on a group covers its name, and not its members`() {
    let index = access(grant([.read, .manage], on: group("g")))
    #expect(index.allows(.subscribe, group("g")))
    #expect(index.allows(.addToGroup, group("g")))
    #expect(!index.allows(.subscribe, channel("g")))
    #expect(!index.allows(.subscribe, group("h")))
  }

  @Test func `a grant on a group with an auth key covers that key alone`() {
    let index = access(grant(.read, on: group("g"), for: keyHolder))
    #expect(index.allows(key, .subscribe, group("g")))
    #expect(!index.allows(.subscribe, group("g")))
  }

  @Test func `a grant on all groups covers every group, and no presence`() {
    let index = access(grant(.read, on: group(":")))
    #expect(index.allows(.subscribe, group("g")))
    #expect(index.allows(.listGroups, group(":")))
    #expect(!index.allows(.subscribe, group("g-pnpres")))
    #expect(!index.allows(.subscribe, channel("g")))
    #expect(
      access(grant(.read, on: group(":-pnpres"))).allows(.subscribe, group("g-pnpres")))
  }

  @Test func `a grant on a group does not list all groups`() {
    #expect(!access(grant(.read, on: group("g"))).allows(.listGroups, group(":")))
  }

  @Test func `a pattern covers the names behind its first dot, and no presence`() {
    let index = access(grant(.read, on: channel("a.*")))
    #expect(index.allows(.subscribe, channel("a.b")))
    #expect(index.allows(.subscribe, channel("a.b.c")))
    #expect(index.allows(.subscribe, channel("a.*")))
    #expect(index.allows(.subscribe, channel("a.b.*")))
    for name in ["a", "ab", "b.a", "a.b-pnpres", "a.*-pnpres", "A.b"] {
      #expect(!index.allows(.subscribe, channel(name)), "\(name)")
    }
    #expect(
      access(grant(.read, on: channel("a.*-pnpres")))
        .allows(.subscribe, channel("a.b-pnpres")))
  }

  @Test func `a pattern of two levels is a literal name`() {
    let index = access(grant(.read, on: channel("a.b.*")))
    #expect(index.allows(.subscribe, channel("a.b.*")))
    #expect(!index.allows(.subscribe, channel("a.b.c")))
    #expect(!index.allows(.subscribe, channel("a.*")))
  }

  @Test func `a pattern works with an auth key, and ends when it is removed`() {
    var index = access(grant(.read, on: channel("a.*"), for: keyHolder))
    #expect(index.allows(key, .subscribe, channel("a.b")))
    #expect(!index.allows(.subscribe, channel("a.b")))
    index.removeGrant(Grant.Key(channel("a.*"), of: shop, holder: keyHolder))
    #expect(!index.allows(key, .subscribe, channel("a.b")))
  }

  @Test func `presence needs a grant of its own`() {
    #expect(!access(grant(.read, on: channel("c"))).allows(.subscribe, channel("c-pnpres")))
    #expect(!access(grant(.read, on: channel("c-pnpres"))).allows(.subscribe, channel("c")))
  }

  @Test func `a broader grant wins, and a grant without the right forbids nothing`() {
    let index = access(
      grant(.read, on: .application), grant(.write, on: channel("c")),
      grant(.manage, on: channel("c"), for: keyHolder))
    #expect(index.allows(key, .subscribe, channel("c")))
    #expect(index.allows(key, .publish, channel("c")))
    #expect(index.allows(key, .purge, channel("c")))
    #expect(!index.allows(.purge, channel("c")))
  }

  @Test func `rights of different levels do not combine to one`() {
    let index = access(grant(.read, on: channel("c")), grant(.write, on: channel("d")))
    #expect(!index.allows(.publish, channel("c")))
  }

  @Test func `a lease can be granted for one consumer`() {
    let index = access(grant(.lease, on: consumer("w", of: "c")))
    #expect(index.allows(.lease, consumer("w", of: "c")))
    #expect(!index.allows(.lease, consumer("v", of: "c")))
    #expect(!index.allows(.lease, consumer("w", of: "d")))
    #expect(!index.allows(.lease, channel("c")))
    #expect(access(grant(.lease, on: channel("c"))).allows(.lease, consumer("v", of: "c")))
  }

  @Test func `a user has the grants of his name and of everyone`() {
    let user = made(try Name("ana"))
    var index = access(
      grant(.read, on: channel("c"), for: .user(user)), grant(.write, on: channel("c")))
    index.put(user: user, roles: [], of: shop)
    index.put(user: made(try Name("bob")), roles: [], of: shop)
    #expect(index.allows(.user(user), .subscribe, channel("c")))
    #expect(index.allows(.user(user), .publish, channel("c")))
    #expect(!index.allows(.user(made(try Name("bob"))), .subscribe, channel("c")))
  }

  @Test func `an open application allows what PubNub allows without the access manager`() {
    let open = access(isOpen: true)
    for operation in [AccessOperation.subscribe, .publish, .signal, .history, .fetch, .setState] {
      #expect(open.reason(operation, channel("c")) == .openApplication, "\(operation)")
    }
    #expect(open.allows(.addToGroup, group("g")))
    #expect(open.allows(.hereNowEverywhere, .application))
    for operation in [AccessOperation.deleteMessages, .lease, .addConsumer, .deadLetters, .purge] {
      #expect(!open.allows(operation, channel("c")), "\(operation)")
      #expect(!open.allows(key, operation, channel("c")), "\(operation)")
    }
  }

  @Test(arguments: [
    "private-a", "presence-a", "private-encrypted-a", "private-a-pnpres", "#server-to-user-7",
    "#server-to-user-7-pnpres", "#server-to-user-a.*",
  ])
  func `what everyone has does not reach a private channel`(name: String) throws {
    var open = access(
      grant(.all, on: .application), grant(.read, on: channel(name)),
      grant(.read, on: channel("private-a.*")), isOpen: true)
    #expect(open.reason(.subscribe, channel(name)) == .needsAuthority)
    #expect(open.reason(key, .subscribe, channel(name)) == .needsAuthority)
    open.put(grant(.read, on: channel(name), for: keyHolder))
    #expect(open.allows(key, .subscribe, channel(name)))
    let rights = TokenRights(channels: [TokenRights.Entry(name, .read)])
    #expect(open.allows(.token(try token(rights), userID: nil), .subscribe, channel(name)))
    #expect(open.allows(.signed(shop), .subscribe, channel(name)))
  }

  @Test func `a private channel keeps its jobs from everyone too`() {
    let index = access(grant(.lease, on: .application))
    #expect(index.reason(.lease, consumer("w", of: "private-a")) == .needsAuthority)
  }

  @Test(arguments: [AccessOperation.publish, .signal, .fire, .clientEvent, .history, .setState])
  func `in an open application only a grant or the secret key reaches a user's channel`(
    operation: AccessOperation
  ) {
    var open = access(isOpen: true)
    #expect(open.reason(operation, channel("#server-to-user-7")) == .needsAuthority)
    #expect(open.allows(.signed(shop), operation, channel("#server-to-user-7")))
    open.put(grant(.all, on: channel("#server-to-user-7"), for: keyHolder))
    #expect(open.allows(key, operation, channel("#server-to-user-7")))
    #expect(open.allows(operation, channel("#server-to-users")))
  }

  @Test func `a Pusher subscriber has the channel for which the endpoint authorized him`() throws {
    let subscriber = Principal.subscriber(try ChannelName("private-a"), of: shop)
    let index = access(grant(.read, on: channel("c")))
    #expect(index.reason(subscriber, .subscribe, channel("private-a")) == .endpoint)
    #expect(index.allows(subscriber, .clientEvent, channel("private-a")))
    #expect(index.allows(subscriber, .subscribe, channel("c")))
    #expect(!index.allows(subscriber, .subscribe, channel("private-b")))
    #expect(!index.allows(subscriber, .publish, channel("private-a")))
    #expect(!index.allows(subscriber, .history, channel("private-a")))
    let other = Principal.subscriber(try ChannelName("private-a"), of: bank)
    #expect(index.reason(other, .subscribe, channel("private-a")) == .otherApplication)
  }

  @Test func `an application that does not exist allows nothing, signed or not`() {
    let empty = AccessIndex()
    #expect(empty.reason(.signed(shop), .publish, channel("c")) == .unknownApplication)
    #expect(empty.reason(.publish, channel("c")) == .unknownApplication)
  }

  @Test func `nothing of one application counts in another`() throws {
    var index = access(grant(.all, on: .application, of: bank))
    index.put(application(bank, name: "bank"))
    index.put(grant(.all, on: channel("c"), for: .authKey(hash("k")), of: bank))
    #expect(!index.allows(key, .publish, channel("c")))
    #expect(index.reason(.signed(bank), .publish, channel("c")) == .otherApplication)
    let rights = TokenRights(channels: [TokenRights.Entry("c", .all)])
    let foreign = try token(rights, of: application(bank, name: "bank"))
    #expect(
      index.reason(.token(foreign, userID: nil), .publish, channel("c")) == .otherApplication)
  }
}
