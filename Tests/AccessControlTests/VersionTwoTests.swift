import Foundation
import TestSupport
import Testing

@testable import AccessControl

/// Grants and audits of version 2, and PubNub's answers to them.
@Suite struct VersionTwoTests {
  private static let path = "/v2/auth/grant/sub-key/sub-c-shop"

  private static func request(_ query: String) -> RawRequest {
    RawRequest(method: "GET", target: Array("\(path)?\(query)".utf8))
  }

  private func query(_ query: String) throws -> GrantQuery {
    try GrantQuery(Self.request(query))
  }

  private func grants(_ query: String) throws -> [Grant] {
    try GrantQuery(Self.request(query)).grants(of: shop, hashedBy: hasher, start: start)
  }

  // MARK: - Calls

  @Test(arguments: [
    ("GET", "/v2/auth/grant/sub-key/s", AccessManagerCall.grant),
    ("GET", "/v1/auth/grant/sub-key/s?x=1", .grant), ("GET", "/v2/auth/audit/sub-key/s", .audit),
    ("GET", "/v1/auth/audit/sub-key/s", .audit), ("POST", "/v3/pam/s/grant?a=b", .grantToken),
    ("DELETE", "/v3/pam/s/grant/q%3D%2F", .revokeToken(text: Array("q=/".utf8))),
  ])
  func `a call is told by its method and path`(
    method: String, target: String, call: AccessManagerCall
  ) {
    let found = AccessManagerCall.of(RawRequest(method: method, target: Array(target.utf8)))
    #expect(found?.call == call)
    #expect(found?.subscribeKey == "s")
  }

  @Test(arguments: [
    ("POST", "/v2/auth/grant/sub-key/s"), ("GET", "/v3/auth/grant/sub-key/s"),
    ("GET", "/v2/auth/revoke/sub-key/s"), ("GET", "/v3/pam/s/grant"), ("POST", "/v3/pam/s/grant/t"),
    ("DELETE", "/v3/pam/s/grant"), ("GET", "/"), ("GET", ""), ("GET", "/v2/auth/grant/sub-key"),
    ("GET", "/v2/auth/grant/sub_key/s"), ("DELETE", "/v3/pam/s/grant/t/u"),
  ])
  func `another path is no call of the access manager`(method: String, target: String) {
    #expect(AccessManagerCall.of(RawRequest(method: method, target: Array(target.utf8))) == nil)
  }

  // MARK: - Queries

  @Test func `a grant names channels and auth keys, and gives each pair its rights`() throws {
    let found = try grants("channel=a%2Cb,c%20d&auth=k%201,k%2B2&r=1&w=0&m=1&ttl=5&uuid=x&pnsdk=y")
    let names = ["a", "b", "c d"]
    #expect(
      Set(found)
        == Set(
          names.flatMap { name in
            ["k 1", "k+2"].map { key in
              grant([.read, .manage], on: channel(name), for: .authKey(hash(key)), minutes: 5)
            }
          }))
  }

  @Test func `a grant without names is on the application`() throws {
    #expect(try grants("r=1&ttl=0") == [grant(.read, on: .application)])
  }

  @Test func `a grant names groups, all of them by a colon`() throws {
    #expect(
      try grants("channel-group=%3A,g&m=1&ttl=1")
        == [grant(.manage, on: group(":"), minutes: 1), grant(.manage, on: group("g"), minutes: 1)])
  }

  @Test func `a plus is a plus`() throws {
    #expect(try grants("channel=a+b&r=1&ttl=0") == [grant(.read, on: channel("a+b"))])
  }

  @Test(arguments: [
    ("r=1", 1440), ("r=1&ttl=0", 0), ("r=1&ttl=-1", 1440), ("r=1&ttl=", 1440),
    ("r=1&ttl=525600", 525_600), ("r=0", 1), ("", 1), ("r=0&w=0&ttl=7", 7),
  ])
  func `a lifetime that is missing is a day, and for a revocation a minute`(
    text: String, minutes: Int
  ) throws {
    #expect(try query(text).minutes == minutes)
  }

  @Test func `a revocation is a grant of nothing`() throws {
    var index = access()
    for grant in try grants("channel=c&auth=k&r=1") { index.put(grant) }
    #expect(index.allows(.authKey(hash("k")), .subscribe, channel("c")))
    for grant in try grants("channel=c&auth=k&r=0&w=0&m=0") { index.put(grant) }
    #expect(!index.allows(.authKey(hash("k")), .subscribe, channel("c")))
    #expect(index.grantCount == 0)
  }

  @Test(arguments: [
    "r=2", "r=yes", "r=1&ttl=525601", "r=1&ttl=-2", "r=1&ttl=x", "r=1&ttl=99999999999999999999",
    "auth=k&r=1", "target-uuid=u&g=1", "target-uuid=u&auth=k&channel=c&g=1", "channel=a%2Fb&r=1",
    "channel=a%00&r=1", "channel=%FF&r=1", "category=channels&auth=k&g=1", "channel-group=%0A&r=1",
    "channel=\(String(repeating: "x", count: 201))&r=1",
    "channel=c&auth=\(String(repeating: "k", count: 513))&r=1",
  ])
  func `a grant that is not valid answers 400`(text: String) {
    let reply = #expect(throws: AccessReply.self) { try query(text) }
    #expect(reply?.status == 400)
    #expect(
      reply?.text.contains(#""service":"Access Manager","message":"Invalid Arguments: "#) == true)
  }

  @Test func `a call makes at most 1,000 grants`() throws {
    let channels = (0..<40).map { "c\($0)" }.joined(separator: ",")
    let keys = (0..<25).map { "k\($0)" }.joined(separator: ",")
    #expect(try grants("channel=\(channels)&auth=\(keys)&r=1").count == 1000)
    #expect(throws: AccessReply.self) { try query("channel=\(channels)&auth=\(keys),k&r=1") }
  }

  // MARK: - Answers

  /// PubNub's recorded payloads, level by level.
  @Test(arguments: [
    (
      "r=1&w=1",
      #"{"level":"subkey","subscribe_key":"s","ttl":1440,"r":1,"w":1,"m":0,"d":0,"g":0,"u":0,"j":0}"#
    ),
    (
      "channel=a&r=1&w=1",
      #"{"level":"channel","subscribe_key":"s","ttl":1440,"channels":{"a":{"r":1,"w":1,"m":0,"d":0}}}"#
    ),
    (
      "channel=a,b&r=1&ttl=5",
      #"{"level":"channel","subscribe_key":"s","ttl":5,"channels":{"a":{"r":1,"w":0,"m":0,"d":0},"b":{"r":1,"w":0,"m":0,"d":0}}}"#
    ),
    (
      "channel=a&auth=k&r=1",
      #"{"level":"user","subscribe_key":"s","ttl":1440,"channel":"a","auths":{"k":{"r":1,"w":0,"m":0,"d":0}}}"#
    ),
    (
      "channel=a,b&auth=k&r=1",
      #"{"level":"user","subscribe_key":"s","ttl":1440,"channels":{"a":{"auths":{"k":{"r":1,"w":0,"m":0,"d":0}}},"b":{"auths":{"k":{"r":1,"w":0,"m":0,"d":0}}}}}"#
    ),
    (
      "channel-group=g&m=1",
      #"{"level":"channel-group","subscribe_key":"s","ttl":1440,"channel-groups":{"g":{"r":0,"w":0,"m":1,"d":0}}}"#
    ),
    (
      "channel-group=g&auth=k&r=1",
      #"{"level":"channel-group+auth","subscribe_key":"s","ttl":1440,"channel-groups":"g","auths":{"k":{"r":1,"w":0,"m":0,"d":0}}}"#
    ),
    (
      "channel-group=g,h&auth=k&r=1",
      #"{"level":"channel-group+auth","subscribe_key":"s","ttl":1440,"channel-groups":{"g":{"auths":{"k":{"r":1,"w":0,"m":0,"d":0}}},"h":{"auths":{"k":{"r":1,"w":0,"m":0,"d":0}}}}}"#
    ),
    (
      "target-uuid=u&auth=k&g=1&ttl=1",
      #"{"level":"uuid","subscribe_key":"s","ttl":1,"uuids":{"u":{"auths":{"k":{"r":0,"w":0,"m":0,"d":0,"g":1,"u":0,"j":0}}}}}"#
    ),
    (
      "channel=a&channel-group=g&auth=k&r=1",
      #"{"level":"user","subscribe_key":"s","ttl":1440,"channels":{"a":{"auths":{"k":{"r":1,"w":0,"m":0,"d":0}}}},"channel-groups":{"g":{"auths":{"k":{"r":1,"w":0,"m":0,"d":0}}}}}"#
    ),
    (
      "",
      #"{"level":"subkey","subscribe_key":"s","ttl":1,"r":0,"w":0,"m":0,"d":0,"g":0,"u":0,"j":0}"#
    ),
  ])
  func `a grant answers as PubNub does`(text: String, payload: String) throws {
    let reply = try query(text).reply(subscribeKey: "s")
    #expect(reply.status == 200)
    #expect(
      reply.text
        == #"{"message":"Success","payload":\#(payload),"service":"Access Manager","status":200}"#)
  }

  @Test(.enabled(if: PubNubReader.isAvailable, PubNubReader.reason))
  func `the stock SDK reads every answer`() throws {
    let queries = [
      "r=1&w=1", "channel=a&r=1", "channel=a&auth=k&r=1", "channel=a,b&auth=k,l&w=1",
      "channel-group=g&r=1", "channel-group=g&auth=k&r=1", "channel-group=g,h&auth=k&r=1",
      "target-uuid=u&auth=k&g=1", "channel=a&channel-group=g&auth=k&r=1",
    ]
    let texts = try queries.map { try query($0).reply(subscribeKey: "s").text }
    let read = try PubNubReader.objects("replies", input: texts)
    func entry(_ number: Int, _ kind: String, _ name: String) throws -> [String: Any] {
      try #require((read[number][kind] as? [String: [String: Any]])?[name])
    }
    func auths(_ number: Int, _ kind: String, _ name: String) throws -> [String: [Bool?]] {
      let found = try entry(number, kind, name)["auths"]
      let auths = try #require(found as? [String: [Any]])
      return auths.mapValues { $0.map { $0 as? Bool } }
    }
    #expect(read[0]["flags"] as? [Bool] == [true, true])
    #expect(try entry(1, "channels", "a")["flags"] as? [Bool] == [true, false])
    #expect(try auths(2, "channels", "a") == ["k": [true, false, nil]])
    #expect(try auths(3, "channels", "b") == ["k": [false, true, nil], "l": [false, true, nil]])
    #expect(try entry(4, "groups", "g")["flags"] as? [Bool] == [true, false])
    #expect(try auths(5, "groups", "g") == ["k": [true, false, nil]])
    #expect(try auths(6, "groups", "h") == ["k": [true, false, nil]])
    #expect(try auths(7, "uuids", "u") == ["k": [false, false, true]])
    #expect(try auths(8, "channels", "a") == ["k": [true, false, nil]])
    #expect(try auths(8, "groups", "g") == ["k": [true, false, nil]])
  }

  @Test func `an audit shows what holds now, for the auth keys that it names`() throws {
    let index = access(
      grant(.read, on: .application), grant(.write, on: channel("a"), minutes: 5),
      grant(.read, on: channel("b"), minutes: 1), grant(.manage, on: group("g")),
      grant(.read, on: channel("a"), for: .authKey(hash("k")), minutes: 7))
    func audit(_ query: String) throws -> String {
      let reply = try AuditQuery(Self.request(query)).reply(
        from: index, of: application(), hashedBy: hasher, at: minute(2))
      return reply.text.replacing(
        #"{"message":"Success","payload":{"level":"#, with: ""
      ).replacing(#"},"service":"Access Manager","status":200}"#, with: "")
    }
    #expect(
      try audit("")
        == #""subkey","subscribe_key":"sub-c-shop","r":1,"w":0,"m":0,"d":0,"g":0,"u":0,"j":0,"ttl":0,"channels":{"a":{"r":0,"w":1,"m":0,"d":0,"ttl":5}},"channel-groups":{"g":{"r":0,"w":0,"m":1,"d":0,"ttl":0}}"#
    )
    #expect(
      try audit("channel=a&auth=k,l")
        == #""user","subscribe_key":"sub-c-shop","channel":"a","auths":{"k":{"r":1,"w":0,"m":0,"d":0,"ttl":7},"l":{"r":0,"w":0,"m":0,"d":0}}"#
    )
    #expect(
      try audit("channel=b")
        == #""channel","subscribe_key":"sub-c-shop","channels":{"b":{"r":0,"w":0,"m":0,"d":0}}"#)
  }

  // MARK: - Refusals

  @Test func `a refusal lists the names, groups with a colon, and ends in a newline`() throws {
    #expect(
      AccessReply.forbidden(channels: [try ChannelName("c")]).text
        == #"{"message":"Forbidden","payload":{"channels":["c"]},"error":true,"service":"Access Manager","status":403}"#
        + "\n")
    #expect(
      AccessReply.forbidden(groups: [try GroupName("g")]).text
        == #"{"message":"Forbidden","payload":{"channel-groups":[":g"]},"error":true,"service":"Access Manager","status":403}"#
        + "\n")
  }

  @Test func `a refused token answers its own text`() throws {
    var index = access()
    let token = try token(TokenRights(channels: [TokenRights.Entry("c", .read)]))
    let resource = Resource(channel("c"), of: shop)
    func reply(at now: Date) -> String {
      index.decide(.token(token, userID: nil), .subscribe, resource, at: now).reply().text
    }
    #expect(
      reply(at: token.end)
        == #"{"error":true,"status":403,"service":"Access Manager","message":"Token is expired"}"#
        + "\n")
    index.revoke(token.digest, of: shop, until: token.end)
    #expect(
      reply(at: start)
        == #"{"error":true,"status":403,"service":"Access Manager","message":"Token is revoked"}"#
        + "\n")
    #expect(AccessReply.invalidTimestamp.status == 400)
    #expect(AccessReply.invalidSignature.status == 403)
  }
}
