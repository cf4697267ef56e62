import MessageCipher
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// The client of PubNub's protocol and what PubNub's own service answers: `Fixtures/originals`.
@Suite(.timeLimit(.minutes(10))) struct PubNubOriginalTests {
  private static func client(
    _ url: String, _ change: (inout PubNubConfiguration) -> Void = { _ in }
  ) throws -> PubNubClient {
    var configuration = PubNubConfiguration(
      server: url, subscribeKey: "sub", publishKey: "pub", userID: "anna")
    configuration.secretKey = SharedSecret(secret("sec"))
    configuration.backoff = Backoff(first: .milliseconds(5), maximum: .milliseconds(10))
    change(&configuration)
    return try PubNubClient(configuration)
  }

  /// A call, the answer to it, and what the client makes of it.
  struct Call: Sendable, CustomTestStringConvertible {
    typealias Body = @Sendable (PubNubClient) async throws -> String

    let recording: String
    let line: String
    let result: String
    let body: Body
    var testDescription: String { recording }

    init(_ recording: String, _ line: String, _ result: String, _ body: @escaping Body) {
      (self.recording, self.line, self.result, self.body) = (recording, line, result, body)
    }
  }

  private static let publish: Call.Body = {
    try await $0.publish(json: Array(#""text""#.utf8), to: "orders").description
  }
  private static let signal: Call.Body = {
    try await $0.signal(json: Array("1".utf8), to: "orders")
    return ""
  }
  private static let history: Call.Body = { client in
    try await client.history(of: ["orders"]).messages.sorted { $0.key < $1.key }
      .flatMap { $0.value }.map { message in
        let text = String(decoding: try message.content.get(), as: UTF8.self)
        return "\(message.timetoken) \(message.publisher ?? "-") \(message.meta ?? "-") "
          + "\(message.customType ?? "-") \(text)"
      }.joined(separator: "\n")
  }
  private static let hereNow: Call.Body = { client in
    try await client.hereNow(on: ["orders"]).sorted { $0.key < $1.key }
      .map { "\($0.key) \($0.value.count) \($0.value.userIDs.joined(separator: ","))" }
      .joined(separator: "\n")
  }
  private static let state: Call.Body = { try await $0.state(on: "orders") ?? "none" }
  private static let group: Call.Body = {
    try await $0.channels(ofGroup: "friends").joined(separator: ",")
  }
  private static let addToGroup: Call.Body = {
    try await $0.add(["orders"], toGroup: "friends")
    return ""
  }
  private static let grantToken: Call.Body = { client in
    let token = try await client.grantToken(PubNubTokenRequest(lifetime: .seconds(3600)))
    return token.withBytes { bytes in
      String(decoding: (0..<bytes.byteCount).map { bytes[$0] }, as: UTF8.self)
    }
  }
  private static let revokeToken: Call.Body = {
    try await $0.revokeToken(secret("a-token"))
    return ""
  }

  private static let publishLine = "POST /publish/pub/sub/0/orders/0"
  private static let signalLine = "GET /signal/pub/sub/0/orders/0/1"
  private static let historyLine = "GET /v3/history/sub-key/sub/channel/orders"
  private static let presenceLine = "GET /v2/presence/sub-key/sub/channel/orders"
  private static let groupLine = "GET /v1/channel-registration/sub-key/sub/channel-group/friends"

  static let calls: [Call] = [
    Call("time", "GET /time/0", "16608498661343013") { try await $0.time().description },
    Call("published", publishLine, "16608498661343013", publish),
    Call("signal-too-large", signalLine, "refused 400 Signal size too large", signal),
    Call("request-too-long", signalLine, "refused 414 Request URI Too Long", signal),
    Call("invalid-key", publishLine, "refused 400 Invalid Key", publish),
    Call("message-too-large", publishLine, "refused 413 Message Too Large", publish),
    Call("forbidden", publishLine, "forbidden 403 Forbidden", publish),
    Call("token-revoked", publishLine, "forbidden 403 Token is revoked", publish),
    Call(
      "history", historyLine,
      """
      16608498661343013 bert - - "the first"
      16608498661343014 anna {"kind":"book"} order {"item":"Bücher"}
      16608498661343015 - - - 3
      """, history),
    Call("history-empty", historyLine, "", history),
    Call("history-refused", historyLine, "refused 400 Invalid Arguments", history),
    Call("history-not-enabled", historyLine, "forbidden 403 requires this to be enabled", history),
    Call("counts", "GET /v3/history/sub-key/sub/message-counts/orders", "3") {
      try await "\($0.messageCount(of: "orders", after: #require(Timetoken(rawValue: 1))))"
    },
    Call("deleted", "DELETE /v3/history/sub-key/sub/channel/orders", "") {
      try await $0.deleteMessages(of: "orders")
      return ""
    },
    Call("here-now-one", presenceLine, "orders 3 anna,bert,carl", hereNow),
    Call("here-now-several", presenceLine, "news 2 anna,bert\norders 1 anna", hereNow),
    Call("here-now-no-one", presenceLine, "", hereNow),
    Call("here-now-count", presenceLine, "orders 3 ", hereNow),
    Call("where-now", "GET /v2/presence/sub-key/sub/uuid/anna", "orders,news") {
      try await $0.whereNow().joined(separator: ",")
    },
    Call("state", "\(presenceLine)/uuid/anna", #"{"mood":"good"}"#, state),
    Call("state-empty", "\(presenceLine)/uuid/anna", "none", state),
    Call("state-set", "\(presenceLine)/uuid/anna/data", "") {
      try await $0.setState(#"{"mood":"good"}"#, on: ["orders"])
      return ""
    },
    Call("state-refused", "\(presenceLine)/uuid/anna/data", "refused 400 No state specified.") {
      try await $0.setState("", on: ["orders"])
      return ""
    },
    Call("group", groupLine, "orders,news", group),
    Call("group-unknown", groupLine, "", group),
    Call("group-changed", groupLine, "", addToGroup),
    Call(
      "group-refused", groupLine, "refused 400 Maximum channel group count exceeded.", addToGroup),
    Call("forbidden-group", groupLine, "forbidden 403 Forbidden", group),
    Call("granted", "GET /v2/auth/grant/sub-key/sub", "") {
      try await $0.grant(
        [.read, .write], channels: ["orders"], authKeys: [SharedSecret(secret("key"))],
        lifetime: .seconds(3600))
      return ""
    },
    Call("token", "POST /v3/pam/sub/grant", "qEF2AkF0GmL-jw==", grantToken),
    Call("token-refused", "POST /v3/pam/sub/grant", "refused 400 Invalid ttl", grantToken),
    Call("revocation", "DELETE /v3/pam/sub/grant/a-token", "", revokeToken),
    Call(
      "revocation-refused", "DELETE /v3/pam/sub/grant/a-token", "refused 400 Invalid token",
      revokeToken),
  ]

  @Test(arguments: calls) func `each answer of PubNub is understood`(call: Call) async throws {
    try await OriginalServer.replay([call.recording]) { url, original in
      let client = try Self.client(url)
      do {
        let result = try await call.body(client)
        #expect(result == call.result)
      } catch let error as MessagingClientError {
        let parts = call.result.split(separator: " ", maxSplits: 2).map(String.init)
        #expect(parts.first == error.code.description, "\(error)")
        #expect(parts.dropFirst().first == error.status.map { "\($0)" })
        #expect(error.message.contains(parts.last ?? "-"), "\(error)")
      }
      #expect(original.lines == [call.line])
      let query = original.requests.first?.query ?? ""
      #expect(query.contains("uuid=anna") && query.contains("pnsdk="))
      #expect(query.contains("&signature=v2.") == (call.recording != "time"))
    }
  }

  @Test func `events of PubNub come in their order, and those of other features are left out`()
    async throws
  {
    try await OriginalServer.replay(["handshake", "events", "left"]) { url, original in
      let subscription = try Self.client(url).subscribe(
        to: ["orders", "news.*"], groups: ["friends"], withPresence: true)
      var found: [String] = []
      for try await event in subscription {
        found.append(try Self.text(event))
        if found.count == 8 { break }
      }
      #expect(
        found == [
          "connected",
          #"message orders - bert {"kind":"book"} order {"item":"Bücher / 100 %"}"#,
          #"message orders friends bert - - "by a group""#,
          "message news.sport news.* bert - - [1,2.5,null,true]",
          #"signal orders - bert - - "typing""#,
          "join orders bert 2 [] []",
          #"interval orders - 30 ["carl"] ["dora", "emil"]"#,
          #"message orders - bert - - "newer than the answer""#,
        ])
      // The place is that of the answer, not of the event that is newer.
      #expect(subscription.place?.rawValue == 16_608_558_425_549_737)
      try await subscription.unsubscribe()
      let path = "orders,orders-pnpres,news.%2A,news.%2A-pnpres"
      #expect(
        original.lines == [
          "GET /v2/subscribe/sub/\(path)/0", "GET /v2/subscribe/sub/\(path)/0",
          "GET /v2/presence/sub-key/sub/channel/\(path)/leave",
        ])
      let polls = original.requests.prefix(2).map(\.query)
      #expect(polls[0].contains("tt=0&") && !polls[0].contains("tr="))
      #expect(polls[1].contains("tt=16608558412820335&") && polls[1].contains("tr=43&"))
    }
  }

  private static func text(_ event: PubNubEvent) throws -> String {
    func text(_ kind: String, _ message: PubNubMessage) throws -> String {
      let content = String(decoding: try message.content.get(), as: UTF8.self)
      return "\(kind) \(message.channel) \(message.subscription ?? "-") "
        + "\(message.publisher ?? "-") \(message.meta ?? "-") \(message.customType ?? "-") "
        + content
    }
    return switch event {
    case .message(let message): try text("message", message)
    case .signal(let message): try text("signal", message)
    case .presence(let presence):
      "\(presence.action) \(presence.channel) \(presence.userID ?? "-") \(presence.occupancy) "
        + "\(presence.joined) \(presence.left)"
    case .status(let status): "\(status)"
    }
  }

  @Test func `a subscription that PubNub refuses ends with the reason, and is not asked for again`()
    async throws
  {
    try await OriginalServer.replay(["handshake", "forbidden"]) { url, original in
      let subscription = try Self.client(url).subscribe(to: ["orders"])
      let error = await #expect(throws: MessagingClientError.self) {
        for try await _ in subscription {}
      }
      #expect(error?.code == .forbidden && error?.message.contains("Forbidden") == true)
      #expect(original.lines.count == 2)
    }
  }

  @Test func `a connection that PubNub closes behind an answer is replaced`() async throws {
    try await OriginalServer.replay(["published-and-closed", "published"]) { url, original in
      let client = try Self.client(url)
      for number in 1...2 { try await client.publish(number, to: "orders") }
      #expect(original.requests.map(\.body) == ["1", "2"])
    }
  }
}
