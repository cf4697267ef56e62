import Foundation
import TestSupport
import Testing
import VaultCrypto

@testable import AccessControl

@Suite struct SignatureTests {
  private let time = "timestamp=1700000000"

  /// The code of a text under the application's secret key, by the primitive itself.
  private func code(_ text: String) throws -> [UInt8] {
    let bytes = Array(text.utf8)
    return try HMAC.sha256(key: secret("sec-c-shop"), message: bytes.span.bytes)
  }

  private func version2(_ text: String) throws -> String {
    "v2." + Base64.encode(try code(text), padded: false)
  }

  private func version1(_ text: String) throws -> String {
    Base64.encode(try code(text), padded: true)
  }

  private func verify(_ target: String, at now: Date = start) throws -> RequestSignature {
    try verify("GET", target, at: now)
  }

  private func verify(
    _ method: String, _ target: String, body: String = "", at now: Date = start
  ) throws -> RequestSignature {
    let request = RawRequest(
      method: method, target: Array(target.utf8), body: Array(body.utf8))
    return try RequestSignature.of(request, under: application(), at: now)
  }

  // MARK: - Forms

  @Test func `version 2 covers method, publish key, path, query and body`() throws {
    let path = "/v3/pam/sub-c-shop/grant"
    let signature = try version2("POST\npub-c-shop\n\(path)\n\(time)&uuid=u%201\n{\"ttl\":1}")
    let target = "\(path)?uuid=u%201&\(time)&signature=\(signature)"
    #expect(try verify("POST", target, body: "{\"ttl\":1}") == .valid(.version2))
    #expect(try verify("POST", target, body: "{\"ttl\":2}") == .mismatch)
    #expect(try verify("POST", target) == .mismatch)
    #expect(try verify("PUT", target, body: "{\"ttl\":1}") == .mismatch)
  }

  @Test func `version 2 without a body ends in a newline`() throws {
    let signature = try version2("DELETE\npub-c-shop\n/v3/history/x%20y\n\(time)\n")
    let target = "/v3/history/x%20y?\(time)&signature=\(signature)"
    #expect(try verify("DELETE", target) == .valid(.version2))
    #expect(try verify("DELETE", target + "=") == .valid(.version2))
    #expect(try verify("DELETE", target.replacing("x%20y", with: "x y")) == .mismatch)
  }

  @Test func `JavaScript and Ruby 5 sign a publish by POST as a GET without a body`() throws {
    let path = "/publish/pub-c-shop/sub-c-shop/0/c/0"
    let target = "\(path)?\(time)&signature="
    let signature = try version2("GET\npub-c-shop\n\(path)\n\(time)\n")
    #expect(try verify("POST", target + signature, body: "1") == .valid(.version2WithoutBody))
    #expect(try verify("DELETE", target + signature) == .mismatch)
    let grant = "/v3/pam/sub-c-shop/grant"
    let other = try version2("GET\npub-c-shop\n\(grant)\n\(time)\n")
    #expect(
      try verify("POST", "\(grant)?\(time)&signature=\(other)", body: "{}") == .mismatch)
  }

  @Test func `Python and Go sign a publish by POST in version 1`() throws {
    let path = "/publish/pub-c-shop/sub-c-shop/0/c/0"
    let signature = try version1("sub-c-shop\npub-c-shop\n\(path)\n\(time)")
    for form in [
      signature, signature.replacing("=", with: "%3D"), signature.replacing("=", with: ""),
    ] {
      let target = "\(path)?\(time)&signature=\(form)"
      #expect(try verify("POST", target, body: "1") == .valid(.version1))
    }
  }

  @Test(arguments: ["grant", "audit"])
  func `Ruby 4 signs a word in the place of the path`(word: String) throws {
    let path = "/v1/auth/\(word)/sub-key/sub-c-shop"
    let query = "auth=k&channel=c&\(time)"
    let signature = try version1("sub-c-shop\npub-c-shop\n\(word)\n\(query)")
    let target = "\(path)?\(query)&signature=\(signature)"
    #expect(try verify(target) == .valid(.version1WithWord))
    #expect(try verify(target.replacing("/v1/", with: "/v2/")) == .mismatch)
    #expect(
      try verify(target.replacing("sub-key/sub-c-shop", with: "sub-key/sub-c-x")) == .mismatch)
    let other = word == "grant" ? "audit" : "grant"
    #expect(try verify(target.replacing("/auth/\(word)/", with: "/auth/\(other)/")) == .mismatch)
  }

  @Test func `Ruby 4 writes the standard alphabet, percent-encoded`() throws {
    // Looks for a code with both characters in which the alphabets differ.
    for number in 0..<500 {
      let path = "/v2/history/sub-key/sub-c-shop/channel/\(number)"
      let url = try version1("sub-c-shop\npub-c-shop\n\(path)\n\(time)")
      guard url.contains("-"), url.contains("_") else { continue }
      let standard = url.replacing("-", with: "+").replacing("_", with: "/")
      for form in [
        url, standard, String(decoding: PercentEncoding.encode(standard.utf8), as: UTF8.self),
      ] {
        #expect(try verify("\(path)?\(time)&signature=\(form)") == .valid(.version1), "\(form)")
      }
      let version2 = "v2." + standard
      #expect(try verify("\(path)?\(time)&signature=\(version2)") == .mismatch)
      return
    }
    Issue.record("no such code among 500")
  }

  @Test func `version 1 signs no call of version 3`() throws {
    for path in ["/v3/pam/sub-c-shop/grant", "/v3/pam/sub-c-shop/grant/abc"] {
      let signature = try version1("sub-c-shop\npub-c-shop\n\(path)\n\(time)")
      #expect(try verify("POST", "\(path)?\(time)&signature=\(signature)", body: "{}") == .mismatch)
    }
  }

  @Test(arguments: ["DELETE", "POST", "PUT", "HEAD"])
  func `a signature of version 1 for a GET is good for no other method`(method: String) throws {
    let path = "/v3/history/sub-key/sub-c-shop/channel/c"
    let signature = try version1("sub-c-shop\npub-c-shop\n\(path)\n\(time)")
    let target = "\(path)?\(time)&signature=\(signature)"
    #expect(try verify(target) == .valid(.version1))
    #expect(try verify(method, target) == .mismatch)
  }

  @Test(arguments: ["1", "%7B%22a%22%3A1%7D", "1/2"])
  func `the signature of a publication by GET is good for no POST with another body`(
    message: String
  ) throws {
    let path = "/publish/pub-c-shop/sub-c-shop/0/c/0/\(message)"
    for (signature, form) in [
      (try version2("GET\npub-c-shop\n\(path)\n\(time)\n"), SignatureForm.version2),
      (try version1("sub-c-shop\npub-c-shop\n\(path)\n\(time)"), .version1),
    ] {
      let target = "\(path)?\(time)&signature=\(signature)"
      #expect(try verify(target) == .valid(form))
      #expect(try verify("POST", target, body: "2") == .mismatch)
      #expect(try verify("POST", target) == .mismatch)
    }
  }

  @Test func `only version 2 covers the body`() {
    #expect(SignatureForm.allCases.filter(\.signsBody) == [.version2])
  }

  // MARK: - The canonical query

  @Test(arguments: [
    ("a=~", "a=%7E"), ("a=%7e", "a=%7E"), ("a=x+y", "a=x%2By"), ("a=x%20y", "a=x%20y"),
    ("a='()*!", "a=%27%28%29%2A%21"), ("a=%41", "a=A"), ("a", "a="), ("a=", "a="),
    ("a=b=c", "a=b%3Dc"),
    ("a=,", "a=%2C"), ("a=é", "a=%C3%A9"), ("a=%", "a=%25"), ("a=%zz", "a=%25zz"),
    ("a=-_.", "a=-_."), ("add=1&Z=2&a=3", "Z=2&a=3&add=1"),
  ])
  func `a value is decoded once and encoded again, and names are sorted`(
    query: String, canonical: String
  ) throws {
    let sorted = (canonical.split(separator: "&").map(String.init) + [time]).sorted()
      .joined(separator: "&")
    let signature = try version2("GET\npub-c-shop\n/x\n\(sorted)\n")
    #expect(try verify("/x?\(query)&\(time)&signature=\(signature)") == .valid(.version2))
  }

  @Test(arguments: [
    ("/v2/subscribe/s/c/0", "filter-expr"), ("/v2/subscribe/s/c/0", "channel-group"),
    ("/v2/subscribe/s/c/0", "state"), ("/v2/presence/sub-key/s/channel/c/heartbeat", "state"),
    ("/v2/presence/sub-key/s/channel/c", "channel-group"),
    ("/v2/auth/audit/sub-key/s", "channel"), ("/v2/auth/audit/sub-key/s", "channel-group"),
    ("/v2/auth/audit/sub-key/s", "auth"), ("/publish/p/s/0/c/0/1", "myown"),
  ])
  func `a value that an SDK encodes before it signs is accepted`(path: String, name: String) throws
  {
    let sorted = ["\(name)=x%2520y", time].sorted().joined(separator: "&")
    let signature = try version2("GET\npub-c-shop\n\(path)\n\(sorted)\n")
    #expect(
      try verify("\(path)?\(name)=x%20y&\(time)&signature=\(signature)") == .valid(.version2))
  }

  @Test(arguments: [
    ("/publish/p/s/0/c/0/1", "uuid"), ("/v2/auth/grant/sub-key/s", "channel"),
    ("/v2/auth/grant/sub-key/s", "auth"), ("/v2/history/sub-key/s/channel/c", "auth"),
  ])
  func `a value elsewhere is accepted in its canonical form alone`(path: String, name: String)
    throws
  {
    let sorted = ["\(name)=x%2520y", time].sorted().joined(separator: "&")
    let signature = try version2("GET\npub-c-shop\n\(path)\n\(sorted)\n")
    #expect(try verify("\(path)?\(name)=x%20y&\(time)&signature=\(signature)") == .mismatch)
  }

  @Test func `Ruby's values are accepted as it wrote them`() throws {
    let signature = try version2("GET\npub-c-shop\n/x\nfilter-expr=a~b&\(time)\n")
    #expect(try verify("/x?filter-expr=a~b&\(time)&signature=\(signature)") == .valid(.version2))
  }

  @Test func `several values can each be in another form`() throws {
    let path = "/v2/subscribe/s/c/0"
    let query = "channel-group=g%20h&filter-expr=a%2520b&state=%257B&\(time)"
    let signature = try version2("GET\npub-c-shop\n\(path)\n\(query)\n")
    let target = "\(path)?state=%7B&filter-expr=a%20b&channel-group=g%20h&\(time)"
    #expect(try verify(target + "&signature=\(signature)") == .valid(.version2))
  }

  // MARK: - Refusals

  @Test func `a request without a signature has none`() throws {
    #expect(try verify("/x?a=1") == .missing)
    #expect(try verify("/x") == .missing)
    #expect(try verify("") == .missing)
  }

  @Test(arguments: [(-60, true), (60, true), (-61, false), (61, false), (0, true)])
  func `a timestamp counts for 60 seconds in both directions`(seconds: Int, isTimely: Bool) throws {
    let signature = try version2("GET\npub-c-shop\n/x\n\(time)\n")
    let found = try verify(
      "/x?\(time)&signature=\(signature)", at: start.addingTimeInterval(Double(seconds)))
    #expect(found == (isTimely ? .valid(.version2) : .invalidTimestamp))
  }

  @Test(arguments: [
    "", "timestamp", "timestamp=", "timestamp=x", "timestamp=-1700000000", "timestamp=1.7e9",
    "timestamp=1700000000000", "timestamp=+1700000000",
    "timestamp=1700000000&timestamp=1700000000", "timestamp=99999999999999999999",
  ])
  func `a signature without a good timestamp is refused as such`(parameter: String) throws {
    let signature = try version2("GET\npub-c-shop\n/x\n\(parameter)\n")
    #expect(try verify("/x?\(parameter)&signature=\(signature)") == .invalidTimestamp)
  }

  @Test(arguments: ["", "v2.", "v2", "v2.AAAA", "x", "v2.====", "v1.x", "%00", "v2.é"])
  func `a signature that is no code is refused`(signature: String) throws {
    #expect(try verify("/x?\(time)&signature=\(signature)") == .mismatch)
  }

  @Test func `two signatures are refused, even if one is valid`() throws {
    let signature = try version2("GET\npub-c-shop\n/x\n\(time)\n")
    let target = "/x?\(time)&signature=\(signature)"
    #expect(try verify("\(target)&signature=\(signature)") == .mismatch)
    #expect(try verify("\(target)&signature=x") == .mismatch)
  }

  @Test func `every changed byte of a signed request is refused`() throws {
    let path = "/v2/auth/grant/sub-key/sub-c-shop"
    let query = "auth=k&channel=c&r=1&\(time)&ttl=5"
    let signature = try version2("GET\npub-c-shop\n\(path)\n\(query)\n")
    let target = Array("\(path)?\(query)&signature=\(signature)".utf8)
    for offset in target.indices {
      for bit in 0..<7 {
        var changed = target
        changed[offset] ^= 1 << UInt8(bit)
        let request = RawRequest(method: "GET", target: changed)
        let found = try RequestSignature.of(request, under: application(), at: start)
        if case .valid = found { Issue.record("byte \(offset), bit \(bit)") }
      }
    }
    let request = RawRequest(method: "GET", target: target)
    #expect(
      try RequestSignature.of(request, under: application(), at: start) == .valid(.version2))
    #expect(
      try RequestSignature.of(request, under: application(bank, name: "bank"), at: start)
        == .mismatch)
  }

  @Test func `more than 256 parameters are not verified`() throws {
    let query = (0..<256).map { "a\(1000 + $0)=1" }.joined(separator: "&")
    let signature = try version2("GET\npub-c-shop\n/x\n\(query)&\(time)\n")
    #expect(try verify("/x?\(query)&\(time)&signature=\(signature)") == .mismatch)
  }

  @Test func `a request with a hundred ambiguous values costs no more than 64 codes`() throws {
    let query = (0..<100).map { "own\($0)=x%20y" }.joined(separator: "&")
    let target = "/x?\(query)&\(time)&signature=v2.\(String(repeating: "A", count: 43))"
    var found: RequestSignature?
    let duration = try processorTime { found = try verify(target) }
    #expect(found == .mismatch)
    #expect(duration < .seconds(2))
  }

  // MARK: - The stock SDK

  @Test(.enabled(if: PubNubReader.isAvailable, PubNubReader.reason))
  func `every call that the stock SDK signs verifies`() throws {
    let calls = try PubNubReader.objects("requests")
    #expect(calls.count > 25)
    for call in calls {
      let name = try #require(call["name"] as? String)
      let target = try #require(call["target"] as? String)
      let encoded = try #require(call["body"] as? String)
      let body = try #require(Base64.decode(encoded.utf8, alphabet: .both))
      let request = RawRequest(
        method: try #require(call["method"] as? String), target: Array(target.utf8), body: body)
      let seconds = try #require(
        target.split(separator: /[?&]/).first { $0.hasPrefix("timestamp=") }
          .flatMap { Double($0.dropFirst(10)) })
      let now = Date(timeIntervalSince1970: seconds + 59)
      let found = try RequestSignature.of(request, under: application(), at: now)
      #expect(found == .valid(name == "publish by post" ? .version1 : .version2), "\(name)")
    }
  }
}
