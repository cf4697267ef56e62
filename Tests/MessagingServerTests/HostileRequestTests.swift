import Foundation
import MessagingQueue
import TestSupport
import Testing

@testable import ApplicationStore
@testable import MessagingServer

/// The table of hostile requests in docs/reference/pubnub-api.md, row by row.
@Suite struct HostileRequestTests {
  private static func list(_ count: Int) -> String {
    (0..<count).map { "c\($0)" }.joined(separator: ",")
  }

  @Test func `hostile requests get the answers of the reference, and the server serves on`()
    async throws
  {
    try await ServerFixture.run { server in
      let (publish, subscribe) = (server.open.publish, server.open.subscribe)
      let deep = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
      let rows: [(name: String, method: String, target: String, body: [UInt8], status: Int)] = [
        (
          "a body of over 128 KiB", "POST", "/publish/\(publish)/\(subscribe)/0/c/0",
          [UInt8](repeating: 0x20, count: 200_000), 413
        ),
        (
          "a body that does not decompress", "POST", "/publish/\(publish)/\(subscribe)/0/c/0",
          [0x1F, 0x8B, 1, 2, 3], 400
        ),
        (
          "1,001 channels", "GET", "/v2/subscribe/\(subscribe)/\(Self.list(1_001))/0", [], 400
        ),
        (
          "a name of another application", "GET", "/v2/subscribe/\(subscribe)/closed%2Fc/0", [],
          400
        ),
        (
          "a message to another application", "GET",
          "/publish/\(publish)/\(subscribe)/0/closed%2Fc/0/1", [], 400
        ),
        (
          "forged presence", "GET",
          "/publish/\(publish)/\(subscribe)/0/c-pnpres/0/%7B%22action%22%3A%22join%22%7D", [], 403
        ),
        (
          "a reserved name", "GET", "/publish/\(publish)/\(subscribe)/0/pusher%3Ax/0/1", [], 403
        ),
        ("a pattern", "GET", "/publish/\(publish)/\(subscribe)/0/c.*/0/1", [], 403),
        (
          "deep JSON", "POST", "/publish/\(publish)/\(subscribe)/0/c/0", Array(deep.utf8), 400
        ),
        (
          "a private channel in a group", "GET",
          "/v1/channel-registration/sub-key/\(subscribe)/channel-group/g?add=c,private-c", [], 403
        ),
        (
          "a group with the name of a presence channel", "GET",
          "/v1/channel-registration/sub-key/\(subscribe)/channel-group/g-pnpres?add=c", [], 400
        ),
        ("no JSON", "GET", "/publish/\(publish)/\(subscribe)/0/c/0/%7B", [], 400),
        (
          "a malformed filter", "GET",
          "/v2/subscribe/\(subscribe)/c/0?filter-expr=%28%28&tt=1", [], 481
        ),
        ("a timetoken of letters", "GET", "/v2/subscribe/\(subscribe)/c/0?tt=abc", [], 400),
        ("no UTF-8", "GET", "/v2/subscribe/\(subscribe)/%FF/0", [], 400),
        ("an unknown path", "GET", "/v9/anything", [], 404),
        ("an unknown method", "PATCH", "/time/0", [], 404),
        (
          "the other application's publish key", "GET",
          "/publish/\(server.closed.publish)/\(subscribe)/0/c/0/1", [], 400
        ),
        ("no grant", "GET", "/v2/history/sub-key/\(server.closed.subscribe)/channel/c", [], 403),
        (
          "a grant without a signature", "GET", "/v2/auth/grant/sub-key/\(subscribe)?r=1", [], 403
        ),
      ]
      for row in rows {
        let answer = try await server.send(row.method, row.target, body: row.body)
        #expect(answer.status == row.status, "\(row.name): \(answer.text.prefix(200))")
        let isExpectedText = !answer.text.contains("Internal")
        #expect(isExpectedText, "\(row.name)")
      }
      let long = String(repeating: "a", count: 102_400)
      for target in [
        "/publish/\(publish)/\(subscribe)/0/c/0/%22\(long)%22",
        "/v2/subscribe/\(subscribe)/\(Self.list(100_000))/0",
      ] {
        #expect(try await server.get(target).status == 414)
      }
      #expect(try await server.get("/time/0").status == 200)
    }
  }

  @Test func `a group of more than 2,000 channels is refused`() async throws {
    try await ServerFixture.run { server in
      let group = "/v1/channel-registration/sub-key/\(server.open.subscribe)/channel-group/g"
      for (prefix, status) in [("a", 200), ("b", 200), ("c", 400)] {
        let list = (0..<1_000).map { "\(prefix)\($0)" }.joined(separator: ",")
        let answer = try await server.get("\(group)?add=\(list)")
        #expect(answer.status == status)
      }
    }
  }

  @Test func `a change of access on a full disk or at a lock is to be tried again`() {
    let full = EngineError(.diskFull, "the disk is full")
    let locked = EngineError(.vaultLocked, "the vault is locked")
    for error in [full, locked] {
      let error = ApplicationStoreError(.engine, error.message, underlying: error)
      #expect(PubNubExchange.refusal(error) == (503, "Try again later"))
    }
  }
}
