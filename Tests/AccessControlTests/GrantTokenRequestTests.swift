import Foundation
import StrictJSON
import TestSupport
import Testing

@testable import AccessControl

@Suite struct GrantTokenRequestTests {
  private func request(_ text: String) throws -> GrantTokenRequest {
    try GrantTokenRequest(body: Array(text.utf8))
  }

  private func message(_ text: String) -> String? {
    let reply = #expect(throws: AccessReply.self) { try request(text) }
    #expect(reply?.status == 400)
    guard case .string(let message)? = reply?.body.member("error")?.member("message") else {
      return nil
    }
    return message
  }

  /// As the SDKs write it: Python, then Go and JavaScript with empty and missing parts, then an old
  /// Python with the lifetime as a string.
  @Test(arguments: [
    #"""
    {"ttl": 15, "permissions": {"resources": {"channels": {"ch": 3}, "groups": {}, "uuids": {},
     "users": {}, "spaces": {"ch": 3}}, "patterns": {"channels": {}, "groups": {}, "uuids": {},
     "users": {}, "spaces": {}}, "meta": {}, "categories": {"channels": 32}}}
    """#,
    #"{"ttl":15,"permissions":{"resources":{"channels":{"ch":3}},"patterns":{},"meta":null}}"#,
    #"{"permissions":{"resources":{"channels":{"ch":3}},"uuid":null},"ttl":"15"}"#,
  ])
  func `the bodies of all SDKs are read`(body: String) throws {
    let request = try request(body)
    #expect(request.minutes == 15)
    #expect(request.resources.channels == [TokenRights.Entry("ch", [.read, .write])])
    #expect(request.patterns.isEmpty)
    #expect(request.authorizedUserID == nil)
    #expect(request.meta.isEmpty)
  }

  @Test(.enabled(if: PubNubReader.isAvailable, PubNubReader.reason))
  func `a request of the stock SDK becomes a token that the SDK reads`() throws {
    let sent = try PubNubReader.objects("requests").first { $0["name"] as? String == "grant token" }
    let body = try #require(sent?["body"] as? String).utf8
    let request = try GrantTokenRequest(body: try #require(Base64.decode(body, alphabet: .both)))
    #expect(request.resources.channels == [TokenRights.Entry("ch é", [.read, .write])])
    #expect(request.patterns.channels == [TokenRights.Entry("^a-[0-9]+$", .read)])
    #expect(request.authorizedUserID == "u 1")
    #expect(request.meta == [JSONMember("a", 1), JSONMember("b", "x")])
    let text = try TokenSigner(application()).issue(try request.contents(issue: start))
    let reply = AccessReply.token(text)
    #expect(try PubNubReader.objects("replies", input: [reply.text])[0]["token"] as? String == text)
    let read = try PubNubReader.objects("tokens", input: [text])[0]
    #expect((read["parsed"] as? [String: Any])?["authorized_uuid"] as? String == "u 1")
  }

  @Test(arguments: ["0", "-1", "43201", "1.5", "null", "\"x\"", "\"\"", "1e9", "true", "[]"])
  func `a lifetime out of range answers what PubNub answers`(ttl: String) {
    let body = #"{"ttl":\#(ttl),"permissions":{"resources":{"channels":{"c":1}}}}"#
    let reply = #expect(throws: AccessReply.self) { try request(body) }
    #expect(
      reply?.text
        == #"{"error":{"message":"Invalid ttl","source":"grant","details":[{"message":"Range should be 1 to 43200 minute(s).","location":"ttl","locationType":"body"}]},"service":"Access Manager","status":400}"#
    )
  }

  @Test(arguments: [
    ("", "Invalid JSON"), ("{", "Invalid JSON"), ("[]", "Invalid ttl"),
    (#"{"ttl":1}"#, "Invalid permissions"), (#"{"ttl":1,"permissions":[]}"#, "Invalid permissions"),
    (#"{"ttl":1,"permissions":{}}"#, "Invalid permissions"),
    (#"{"ttl":1,"ttl":2,"permissions":{"resources":{"channels":{"c":1}}}}"#, "Invalid JSON"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":1,"c":2}}}}"#, "Invalid JSON"),
    (#"{"ttl":1,"permissions":{"resources":[]}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":[]}}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":512}}}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":-1}}}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":1.5}}}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"a/b":1}}}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"resources":{"groups":{"":1}}}}"#, "Invalid resources"),
    (#"{"ttl":1,"permissions":{"patterns":{"channels":{"(":1}}}}"#, "Invalid patterns"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":1}},"meta":[]}}"#, "Invalid meta"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":1}},"uuid":1}}"#, "Invalid uuid"),
    (#"{"ttl":1,"permissions":{"resources":{"channels":{"c":1}},"uuid":""}}"#, "Invalid uuid"),
  ])
  func `a body that is not valid names its part`(body: String, expected: String) {
    #expect(message(body) == expected)
  }

  @Test func `a body has at most 65,536 bytes`() {
    #expect(message(String(repeating: " ", count: 65_537)) == "Invalid body")
  }

  @Test func `a body has at most 16 objects and arrays inside one another`() throws {
    func body(_ depth: Int) -> String {
      let meta = String(repeating: #"{"m":"#, count: depth - 2) + "1"
      return #"{"ttl":1,"permissions":{"resources":{"channels":{"c":1}},"meta":\#(meta)"#
        + String(repeating: "}", count: depth)
    }
    _ = try request(body(16))
    #expect(message(body(17)) == "Invalid JSON")
  }

  @Test func `a token is revoked by its path segment, and not after its end`() throws {
    let signer = try TokenSigner(application())
    let text = Array(
      try signer.issue(
        TokenContents(issue: start, minutes: 5, resources: TokenRights())
      ).utf8)
    #expect(try TokenRevocation.token(text, readBy: signer, at: minute(4)).end == minute(5))
    let expired = #expect(throws: AccessReply.self) {
      try TokenRevocation.token(text, readBy: signer, at: minute(5))
    }
    #expect(
      expired?.text
        == #"{"error":{"message":"Invalid token","source":"revoke","details":[{"message":"Token is expired.","location":"token","locationType":"path"}]},"service":"Access Manager","status":400}"#
    )
    let foreign = try TokenSigner(application(bank, name: "bank"))
    #expect(throws: AccessReply.self) {
      try TokenRevocation.token(text, readBy: foreign, at: start)
    }
  }
}
