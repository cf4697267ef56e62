import Foundation
import TestSupport
import Testing

@Suite struct TokenCommandTests {
  private let server: ServerHome

  init() throws { server = try ServerHome() }

  private func explain(_ arguments: String) throws -> Program {
    try server.run(["explain"] + arguments.split(separator: " ").map(String.init))
  }

  @Test func `a token carries names, patterns, user and meta until its end`() throws {
    let meta = try server.file("meta", #" {"plan": "gold", "seats": [1, 2.5, null]} "#)
    let made = try server.run(
      "token", "grant", "shop", "--channel", "orders", "--channel-pattern", "^news", "--group",
      "staff", "--group-pattern", "^team-", "--read", "--write", "--ttl", "60", "--uuid", "alice",
      "--meta-file", meta, "--json"
    ).expect(0)
    let report = try #require(made.objects.first as? [String: String])
    #expect(report["application"] == "shop")
    let end = try Date(#require(report["until"]), strategy: .iso8601)
    #expect(abs(end.timeIntervalSinceNow - 3600) < 600)
    let text = try #require(report["token"])
    let bytes = try #require(
      Data(base64Encoded: text.replacing("-", with: "+").replacing("_", with: "/")))
    for part in ["orders", "^news", "staff", "^team-", "alice", "plan", "gold", "seats"] {
      #expect(bytes.range(of: Data(part.utf8)) != nil, "\(part)")
    }
    let token = try server.file("token", text + "\n")
    for allowed in ["subscribe orders", "publish news.uk", "subscribe --group staff"] {
      try explain("shop \(allowed) --token-file \(token) --uuid alice")
        .expect(0, of: allowed, prints: "is allowed until")
    }
    try explain("shop list-channels-of-group team-a --token-file \(token) --uuid alice").expect(
      0, prints: "pattern 1 of the token gives read")
    for (refused, words) in [
      ("publish other --uuid alice", "nothing gives this caller write"),
      ("purge orders --uuid alice", "nothing gives this caller manage"),
      ("publish orders", "the credential is for another user id"),
    ] {
      try explain("shop \(refused) --token-file \(token)").expect(78, of: refused, prints: words)
    }
  }

  @Test func `a token is printed alone, and revoked in the application that signed it`() throws {
    try server.run("app", "add", "stock").expect(0)
    let options = ["--channel", "c", "--read", "--ttl", "60"]
    let made = try server.run(["token", "grant", "stock"] + options).expect(0)
    #expect(made.text.wholeMatch(of: /[\w=-]{100,}\n/) != nil)
    let token = try server.file("token", made.text)
    let other = try server.token("other", "stock", "--channel", "d", "--read", "--ttl", "60")
    for _ in 0..<2 { try server.run("token", "revoke", "--token-file", token).expect(0) }
    try explain("stock subscribe c --token-file \(token)").expect(78, prints: "was revoked")
    try explain("stock subscribe d --token-file \(other)").expect(0)
    try explain("shop subscribe d --token-file \(other)").expect(
      78, prints: "the credential belongs to another application")
    // Nothing that is stored is a token.
    for bytes in try server.home.contents().values {
      #expect(bytes.range(of: Data(made.text.utf8.prefix(40))) == nil)
    }
  }

  @Test func `what is no token of this home cannot be revoked, and no error shows it`() throws {
    let foreign = try ServerHome()
    try foreign.run("app", "remove", "shop").expect(0)
    try foreign.run("app", "add", "shop").expect(0)
    let token = try foreign.token("token", "shop", "--channel", "c", "--read", "--ttl", "60")
    let other = try server.file("auth", "client's auth key")
    try server.run("token", "revoke", "--token-file", token).expect(
      66, says: "no application of this home signed the token")
    try server.run("token", "revoke", "--token-file", other).expect(
      65, says: "the given text is not a token")
    try explain("shop publish c --token-file \(other)").expect(65, says: "--auth-key-file")
    try server.run("token", "revoke").expect(64, says: "give one of --token-file")
    try server.run("token", "revoke", "--token-prompt").expect(
      77, says: "needs a token", "hint: give --token-file FILE or --token-fd N")
    let text = try #require(foreign.home.folder.contents(of: "token"))
    let errors = try server.run("token", "revoke", "--token-file", token).errors
    #expect(!errors.contains(text.dropLast()))
  }

  @Test(arguments: [
    ("--channel c --read", "--ttl"),
    ("--channel c --ttl 1", "give at least one of --read"),
    ("--read --ttl 1", "give at least one of --channel"),
    ("--channel c --read --ttl 0", "use 1 to 43200"),
    ("--channel c --read --ttl 43201", "use 1 to 43200"),
    ("--channel c/d --read --ttl 1", "has a '/'"),
    ("--channel-pattern (a --read --ttl 1", "pattern"),
    ("--channel c --channel c --read --ttl 1", "name each item once"),
  ])
  func `a token that makes no sense is refused`(options: String, words: String) throws {
    let refused = try server.run(
      ["token", "grant", "shop"] + options.split(separator: " ").map(String.init)
    ).expect(64, says: words)
    #expect(refused.text.isEmpty)
  }

  @Test func `meta that is not a JSON object is refused`() throws {
    let command = ["token", "grant", "shop", "--channel", "c", "--read", "--ttl", "1"]
    for (text, words) in [("[1]", "is not a JSON object"), (#"{"a":1,"a":2}"#, "a member twice")] {
      let meta = try server.file("meta", text)
      try server.run(command + ["--meta-file", meta]).expect(65, of: text, says: words)
    }
    try server.run(command + ["--meta-file", server.home.folder.path("absent")])
      .expect(66, says: "cannot be read")
  }
}
