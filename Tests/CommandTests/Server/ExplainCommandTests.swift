import Foundation
import TestSupport
import Testing

@Suite struct ExplainCommandTests {
  private let server: ServerHome

  init() throws { server = try ServerHome() }

  /// Makes grants for everyone on `news.*` and all groups, and for an auth key on `orders` and a consumer.
  ///
  /// - Returns: the path of the auth key.
  private func grant() throws -> String {
    let key = try server.file("key", "client's auth key")
    try server.run("grant", "shop", "--channel", "news.*", "--read").expect(0)
    try server.run("grant", "shop", "--group", ":", "--read", "--manage").expect(0)
    try server.run(
      "grant", "shop", "--channel", "orders", "--write", "--ttl", "60", "--auth-key-file", key
    ).expect(0)
    try server.run(
      "grant", "shop", "--channel", "jobs", "--consumer", "w", "--lease", "--auth-key-file", key
    ).expect(0)
    return key
  }

  @Test func `each question is answered with its rule`() throws {
    let key = try grant()
    let answers: [(question: String, isAllowed: Bool, rule: String)] = [
      ("publish orders --key", true, "a grant of write on channel 'orders' for this caller"),
      ("publish orders", false, "nothing gives this caller write"),
      ("subscribe orders --key", false, "nothing gives this caller read"),
      ("subscribe news.uk", true, "a grant of read on pattern 'news.*' for everyone"),
      ("message-counts news.uk", true, "a grant of read on pattern 'news.*' for everyone"),
      ("publish a-pnpres --signed", false, "only the server sends messages to this channel"),
      ("purge orders --signed", true, "the request is signed with the secret key"),
      ("manage-access --key", false, "the request must be signed with the secret key"),
      ("subscribe --group staff", true, "a grant of read on all groups for everyone"),
      // A name of an operation that works on groups alone is that of a group.
      ("add-to-group staff", true, "a grant of manage on all groups for everyone"),
      ("list-groups", true, "a grant of read on all groups for everyone"),
      ("lease jobs --consumer w --key", true, "a grant of lease on consumer 'w' of channel 'jobs'"),
      ("lease jobs --key", false, "nothing gives this caller lease"),
      ("here-now-for-all-channels", false, "nothing gives this caller read"),
    ]
    for (question, isAllowed, rule) in answers {
      let words = question.replacing("--key", with: "--auth-key-file \(key)")
      let arguments = ["explain", "shop"] + words.split(separator: " ").map(String.init)
      let said = try server.run(arguments).expect(isAllowed ? 0 : 78, of: question)
      #expect(said.text.contains(isAllowed ? " is allowed" : " is refused: "), "\(question)")
      #expect(said.text.hasSuffix("\n") && said.text.contains(rule), "\(question) \(said.text)")
      #expect(!said.text.contains("client's") && !said.errors.contains("client's"))
    }
  }

  @Test func `the report has the reason, and the end of what is allowed`() throws {
    let key = try grant()
    let question = ["explain", "shop", "publish", "orders", "--json"]
    let allowed = try server.run(question + ["--auth-key-file", key]).expect(0)
    let report = try #require(allowed.objects.first)
    #expect(report["allowed"] as? Bool == true)
    #expect(report["reason"] as? String == "a grant of write on channel 'orders' for this caller")
    let end = try Date(#require(report["until"] as? String), strategy: .iso8601)
    #expect(abs(end.timeIntervalSinceNow - 3600) < 600)
    let refused = try server.run(question).expect(78)
    #expect(refused.text == #"{"allowed":false,"reason":"nothing gives this caller write"}"# + "\n")
  }

  @Test func `an open application answers for everyone, but not for its jobs`() throws {
    try server.run("app", "set", "shop", "--open").expect(0)
    try server.run("explain", "shop", "publish", "any").expect(0, prints: "the application is open")
    try server.run("explain", "shop", "lease", "any").expect(78)
    try server.run("explain", "shop", "subscribe", "private-a").expect(78, prints: "is private")
  }

  @Test(arguments: [
    ("publish", "needs a channel or a group"), ("frobnicate c", "help explain"),
    ("publish a --group g", "give only one of a name and --group"),
    ("lease --consumer c", "--consumer needs the name of its channel"),
    ("publish a --uuid u", "--uuid needs a token"),
    ("publish a --signed --auth-key-prompt", "give only one of an auth key"),
    ("publish a/b", "has a '/'"),
  ])
  func `a question that makes no sense is refused`(question: String, words: String) throws {
    let refused = try server.run(
      ["explain", "shop"] + question.split(separator: " ").map(String.init)
    ).expect(64, says: words)
    #expect(refused.text.isEmpty)
  }
}
