import AccessControl
import Foundation
import MessagingQueue
import Realtime
import Testing

@testable import MessagingServer

/// Who a caller of PubNub's API acts as, and what a deletion covers.
@Suite struct PubNubIdentityTests {
  private static func state(_ server: ServerFixture, of user: String) async throws -> String {
    let id = UserID(user)
    let channel = try Channel("closed/c")
    let states = server.server.gate.home?.presence.read {
      $0.states(of: id, of: "closed", on: [channel])
    }
    return states?[channel].map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  @Test func `a token for one user changes the state of no other user`() async throws {
    try await ServerFixture.run { server in
      let path = "/v2/presence/sub-key/\(server.closed.subscribe)/channel/c"
      var tokens: [String: String] = [:]
      for user in ["alice", "bob"] {
        let token = try await server.token(for: "c", userID: user)
        tokens[user] = token
        let joined = try await server.get("\(path)/heartbeat?uuid=\(user)&auth=\(token)")
        #expect(joined.status == 200, "\(joined.text)")
      }
      func set(_ user: String, as caller: String) async throws -> Int {
        let query = "state=%7B%22by%22%3A%22\(caller)%22%7D&uuid=\(caller)"
        return try await server.get(
          "\(path)/uuid/\(user)/data?\(query)&auth=\(tokens[caller] ?? "")"
        ).status
      }
      #expect(try await set("bob", as: "alice") == 403)
      #expect(try await Self.state(server, of: "bob") == "")
      #expect(try await set("bob", as: "bob") == 200)
      #expect(try await Self.state(server, of: "bob") == #"{"by":"bob"}"#)
      // What others say of themselves is readable.
      let read = try await server.get("\(path)/uuid/bob?uuid=alice&auth=\(tokens["alice"] ?? "")")
      #expect(read.text.contains(#"{"by":"bob"}"#))
    }
  }

  @Test func `a user who has logged in acts under no other user id`() async throws {
    try await ServerFixture.run { server in
      for name in ["ana", "bob"] {
        try await server.grant([.read, .write], "c", .user(Name(name)))
        try await server.put(user: name, "right password")
      }
      let (publish, subscribe) = (server.closed.publish, server.closed.subscribe)
      let presence = "/v2/presence/sub-key/\(subscribe)/channel/c"
      let calls = [
        "\(presence)/heartbeat?", "\(presence)/leave?", "/v2/subscribe/\(subscribe)/c/0?",
        "/publish/\(publish)/\(subscribe)/0/c/0/1?", "/signal/\(publish)/\(subscribe)/0/c/0/1?",
        "\(presence)/uuid/ana/data?state=%7B%7D&",
      ]
      func send(_ target: String) async throws -> Int {
        let field = "Basic " + Data("ana:right password".utf8).base64EncodedString()
        return try await server.send("GET", target, headers: [("Authorization", field)]).status
      }
      for call in calls {
        #expect(try await send(call + "uuid=ana") == 200, "\(call)")
        #expect(try await send(call + "uuid=bob") == 403, "\(call)")
        #expect(try await send(call + "uuid=Ana") == 403, "\(call)")
      }
      #expect(try await send("\(presence)/uuid/bob/data?state=%7B%7D&uuid=ana") == 403)
      // A caller without an id acts as no one.
      #expect(try await send("/publish/\(publish)/\(subscribe)/0/c/0/1") == 200)
      let channel = try Channel("closed/c")
      let users = server.server.gate.home?.presence.read {
        $0.users(of: channel, of: "closed").map(\.user.text)
      }
      #expect(users == ["ana"])
      let publishers = try await server.engine.history(of: channel).map {
        MessageNotes($0.headers).publisher
      }
      #expect(publishers == ["ana", nil])
    }
  }

  @Test(arguments: [
    "start=0", "start=1", "start=00000000000000001", "start=10000000000000000", "start=",
    "start=0&end=0", "start=1&end=1", "end=99999999999999999",
  ])
  func `a deletion with a bound beyond all messages deletes none`(bounds: String) async throws {
    try await ServerFixture.run { server in
      try await server.grant([.read, .delete], "c", .everyone)
      try await server.refresh()
      let channel = try Channel("closed/c")
      for _ in 0..<2 { try await server.engine.publish(Message(channel: channel, payload: [0x31])) }
      let target = "/v3/history/sub-key/\(server.closed.subscribe)/channel/c"
      let answer = try await server.send("DELETE", "\(target)?\(bounds)")
      #expect(answer.status == (bounds == "start=" ? 400 : 200))
      #expect(try await server.engine.messageCount(of: channel) == 2)
      _ = try await server.send("DELETE", "\(target)?end=0")
      #expect(try await server.engine.messageCount(of: channel) == 0)
    }
  }
}
