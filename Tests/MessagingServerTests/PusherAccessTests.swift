import AccessControl
import ApplicationStore
import MessagingQueue
import Testing

@testable import MessagingServer

/// What rights, tokens and signatures give connections of Pusher's protocol.
@Suite struct PusherAccessTests {
  @Test func `what a change of access takes away ends the subscription, and not the connection`()
    async throws
  {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("a")
      _ = try await socket.next("pusher_internal:subscription_succeeded", on: "a")
      let auth = try server.open.pusherAuth("\(try socket.socketID):private-a")
      try await socket.subscribe("private-a", auth: auth)
      _ = try await socket.next("pusher_internal:subscription_succeeded", on: "private-a")
      try await server.store.setOpen(false, of: server.open.record.id)
      let refusal = try await socket.next("pusher:subscription_error", on: "a")
      #expect(refusal.contains(#"\"status\":403"#))
      try await server.engine.publish(
        ["a", "private-a"].map { Message(channel: try Channel("shop/\($0)"), payload: [0x31]) })
      _ = try await socket.next("message", on: "private-a")
      #expect(!socket.texts.contains { $0.contains(#""channel":"a","data":"1""#) })
    }
  }

  @Test func `a revoked token ends its subscription, whatever else is granted`() async throws {
    try await ServerFixture.run { server in
      let text = try await server.token(for: "private-t")
      let socket = try await PusherSocket.connect(server, server.closed)
      try await socket.subscribe("private-t", auth: text)
      _ = try await socket.next("pusher_internal:subscription_succeeded", on: "private-t")
      let signer = try await server.store.signer(of: server.closed.record.id)
      guard case .token(let token) = try signer.read(text.utf8) else {
        Issue.record("the token is not valid")
        return
      }
      try await server.store.revoke(token.digest, of: server.closed.record.id, until: token.end)
      let refusal = try await socket.next("pusher:subscription_error", on: "private-t")
      #expect(refusal.contains("the token was revoked"))
    }
  }

  @Test func `a token decides alone, on a public channel of an open application too`() async throws
  {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      // It is signed by the other application.
      try await socket.subscribe("a", auth: try await server.token(for: "a"))
      let refusal = try await socket.next("pusher:subscription_error", on: "a")
      #expect(refusal.contains(#"\"status\":401"#))
      try await socket.subscribe("b", auth: "anything")
      _ = try await socket.next("pusher_internal:subscription_succeeded", on: "b")
    }
  }

  @Test func `a token with a user is good on a presence channel for that user alone`() async throws
  {
    try await ServerFixture.run { server in
      let token = try await server.token(for: "presence-t", userID: "u")
      for (userID, answer) in [
        ("v", "pusher:subscription_error"), ("u", "pusher_internal:subscription_succeeded"),
      ] {
        let socket = try await PusherSocket.connect(server, server.closed)
        try await socket.subscribe(
          "presence-t", auth: token, data: #"{"user_id":"\#(userID)"}"#)
        _ = try await socket.next(answer, on: "presence-t")
      }
    }
  }

  @Test func `a token that only reads sends no client event`() async throws {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.closed)
      try await socket.subscribe("private-t", auth: try await server.token(for: "private-t"))
      _ = try await socket.next("pusher_internal:subscription_succeeded", on: "private-t")
      try await socket.send(#"{"event":"client-x","channel":"private-t","data":"1"}"#)
      let error = try await socket.next("pusher:error")
      #expect(error.contains(#""code":null"#))
    }
  }

  @Test func `a channel that is private has no place for a signature of another connection`()
    async throws
  {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      for auth in [
        "", "x", "\(server.open.subscribe):", try server.open.pusherAuth("1.2:private-a"),
        try server.closed.pusherAuth("\(try socket.socketID):private-a"),
      ] {
        try await socket.subscribe("private-a", auth: auth)
      }
      _ = try await socket.wait("five refusals") { list in
        list.count {
          if case .text(let text) = $0 { text.contains(#"\"status\":401"#) } else { false }
        }
          == 5 ? true : nil
      }
    }
  }

  @Test
  func `the channel of a user is closed to strangers in an open application, over every protocol`()
    async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      let (name, keys) = ("%23server-to-user-7", server.open)
      for target in [
        "/publish/\(keys.publish)/\(keys.subscribe)/0/\(name)/0/1",
        "/signal/\(keys.publish)/\(keys.subscribe)/0/\(name)/0/1",
        "/v2/subscribe/\(keys.subscribe)/\(name)/0?tt=0",
        "/v2/history/sub-key/\(keys.subscribe)/channel/\(name)?count=1",
        "/v1/channel-registration/sub-key/\(keys.subscribe)/channel-group/g?add=\(name)",
      ] {
        #expect(try await server.get(target).status == 403, "\(target)")
      }
      for frame in [
        "SUBSCRIBE\nid:1\ndestination:/topic/#server-to-user-7\n\n",
        "SEND\ndestination:/topic/#server-to-user-7\n\nforged",
      ] {
        try await STOMPPeer.run(server) { peer in
          try await peer.send(keys.stompConnect)
          #expect(try await peer.next()?.command == "CONNECTED")
          try await peer.send(frame)
          let ending = try await peer.ending()
          #expect(ending?.hasPrefix("access refused: ") == true, "\(frame)")
        }
      }
      let socket = try await PusherSocket.connect(server, keys)
      try await socket.subscribe("#server-to-user-7")
      _ = try await socket.next("pusher:error")
      #expect(try await server.bodies(of: "shop/#server-to-user-7").isEmpty)
    }
  }
}
