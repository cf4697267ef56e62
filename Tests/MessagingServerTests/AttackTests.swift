import AccessControl
import ApplicationStore
import Foundation
import MessagingQueue
import NIOCore
import NIOPosix
import StrictJSON
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// Attacks on Pusher's protocol by clients that have seen what others send.
@Suite struct PusherAttackTests {
  private static let channel = "presence-a"
  private static let ann = #"{"user_id":"ann","user_info":{"name":"Ann"}}"#

  @Test func `a signature is good for its connection, its channel and its user alone`()
    async throws
  {
    try await ServerFixture.run { server in
      let (ann, thief) = (
        try await PusherSocket.connect(server, server.open),
        try await PusherSocket.connect(server, server.open)
      )
      let (id, own) = (try ann.socketID, try thief.socketID)
      let (channel, data) = (Self.channel, Self.ann)
      let auth = try server.open.pusherAuth("\(id):\(channel):\(data)")
      try await ann.subscribe(channel, auth: auth, data: data)
      _ = try await ann.next("pusher_internal:subscription_succeeded", on: channel)
      // What the thief's own endpoint has signed for it.
      let granted = try server.open.pusherAuth("\(own):private-b")
      let code = try #require(granted.split(separator: ":").last)
      let attempts: [(channel: String, auth: String, data: String?)] = [
        // Replayed: on another connection, also with the other's number within the data.
        (channel, auth, data),
        (channel, auth, "\(id):\(channel):\(data)"),
        // Shifted: the same text divided in another way.
        ("private-b:\(data)", granted, nil),
        ("private-b", try server.open.pusherAuth("\(own):private-b:\(data)"), nil),
        ("private-b", try server.open.pusherAuth("\(own)private-b"), nil),
        ("private-b", try server.open.pusherAuth("\(own):private-"), "b"),
        // Of another channel, or of none.
        ("private-c", granted, nil),
        (channel, granted, data),
        ("private-b", try server.open.pusherAuth(own), nil),
        ("private-b", try server.open.pusherAuth("\(own)::user::\(data)"), nil),
        // Changed.
        ("private-b", "\(server.closed.subscribe):\(code)", nil),
        ("private-b", String(granted.dropLast()), nil),
        ("private-b", granted.uppercased(), nil),
        ("private-b", ":\(code)", nil),
      ]
      for attempt in attempts {
        try await thief.subscribe(attempt.channel, auth: attempt.auth, data: attempt.data)
      }
      try await thief.subscribe("private-b", auth: granted)
      _ = try await thief.next("pusher_internal:subscription_succeeded", on: "private-b")
      let answers = thief.texts.filter { $0.hasPrefix(#"{"event":"pusher"#) }.dropFirst()
      #expect(answers.count == attempts.count + 1)
      #expect(answers.count { $0.contains("subscription_succeeded") } == 1)
      // No one has come to the channel.
      #expect(!ann.texts.contains { $0.contains("member_added") })
    }
  }

  @Test func `presence data that was changed behind its signature lets no one in`() async throws {
    try await ServerFixture.run { server in
      let (watcher, forger) = (
        try await PusherSocket.connect(server, server.open),
        try await PusherSocket.connect(server, server.open)
      )
      let place = "\(try watcher.socketID):\(Self.channel)"
      let own = #"{"user_id":"w"}"#
      try await watcher.subscribe(
        Self.channel, auth: server.open.pusherAuth("\(place):\(own)"), data: own)
      _ = try await watcher.next("pusher_internal:subscription_succeeded")
      let auth = try server.open.pusherAuth("\(try forger.socketID):\(Self.channel):\(Self.ann)")
      let forged = [
        #"{"user_id":"admin","user_info":{"name":"Ann"}}"#,
        #"{"user_id":"ann","user_info":{"name":"Admin"}}"#,
        #"{"user_id":"ann","user_info":{"name":"Ann"},"user_id":"admin"}"#,
        #"{"user_id":"ann","user_info":{"name":"Ann"}} "#,
        #"{"user_id":"\u0061nn","user_info":{"name":"Ann"}}"#,
        #"{"user_id":"","user_info":{"name":"Ann"}}"#, "", "{}",
      ]
      for data in forged { try await forger.subscribe(Self.channel, auth: auth, data: data) }
      // The same signature lets its own user in.
      try await forger.subscribe(Self.channel, auth: auth, data: Self.ann)
      _ = try await watcher.next("pusher_internal:member_added", on: Self.channel)
      let added = watcher.texts.filter { $0.contains("member_added") }
      #expect(added.count == 1 && added[0].contains(#"\"user_id\":\"ann\""#), "\(added)")
      _ = try await forger.next("pusher_internal:subscription_succeeded", on: Self.channel)
      let refusals = forger.texts.filter { $0.contains("pusher:subscription_error") }
      #expect(refusals.count == forged.count)
      #expect(refusals.allSatisfy { $0.contains(#"\"status\":401"#) }, "\(refusals)")
    }
  }

  /// An endpoint that signs for any `socket_id` that a client names, beside `public-b`.
  @Test func `a signature for a socket_id with a colon opens no private channel`() async throws {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      let id = try socket.socketID
      #expect(id.wholeMatch(of: /[0-9]+\.[0-9]+/) != nil)
      for (signed, channel) in [
        ("\(id):private-a:public-b", "private-a:public-b"),
        ("\(id):private-a:public-b", "private-a"),
        ("\(id):private-a::public-b", "private-a:"), (":\(id):private-a", "private-a"),
      ] {
        try await socket.subscribe(channel, auth: server.open.pusherAuth(signed))
      }
      try await socket.send(#"{"event":"pusher:ping"}"#)
      _ = try await socket.next("pusher:pong")
      #expect(!socket.texts.contains { $0.contains("subscription_succeeded") })
      #expect(
        server.server.gate.home?.pusher.occupied(
          in: server.open.record.id, prefix: ""
        ).isEmpty == true)
    }
  }

  @Test func `a storm of client events reaches others at its limit, and ends its connection`()
    async throws
  {
    let frozen = NIODeadline.now()
    try await ServerFixture.run({ $0.uptime = { frozen } }) { server in
      let sockets = [
        try await PusherSocket.connect(server, server.open),
        try await PusherSocket.connect(server, server.open),
        try await PusherSocket.connect(server, server.open),
      ]
      for socket in sockets {
        let auth = try server.open.pusherAuth("\(try socket.socketID):private-a")
        try await socket.subscribe("private-a", auth: auth)
        _ = try await socket.next("pusher_internal:subscription_succeeded")
      }
      let (storm, calm, watcher) = (sockets[0], sockets[1], sockets[2])
      for _ in 0..<2_600 {
        try? await storm.send(#"{"event":"client-storm","channel":"private-a","data":"1"}"#)
      }
      #expect(try await storm.closeCode() == 4100)
      try await calm.send(#"{"event":"client-calm","channel":"private-a","data":"1"}"#)
      _ = try await watcher.next("client-calm", on: "private-a")
      #expect(watcher.texts.count { $0.contains("client-storm") } == 10)
      #expect(storm.texts.contains { $0.contains(#""code":4301"#) })
    }
  }

  @Test func `no name of a channel reaches another application`() async throws {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      for name in ["../closed/c", "closed/c", "/closed/c", "shop/c", "closed%2Fc", "*", "c.*"] {
        try await socket.subscribe(name)
      }
      try await socket.subscribe("c")
      _ = try await socket.next("pusher_internal:subscription_succeeded", on: "c")
      for (application, text) in [("closed", "theirs"), ("shop", "ours")] {
        try await server.engine.publish(
          Message(channel: Channel("\(application)/c"), payload: Array(text.utf8)))
      }
      _ = try await socket.next("message", on: "c")
      try await socket.send(#"{"event":"pusher:ping"}"#)
      _ = try await socket.next("pusher:pong")
      #expect(!socket.texts.contains { $0.contains("theirs") })
      #expect(socket.texts.count { $0.contains("subscription_succeeded") } == 1)
    }
  }
}

/// Attacks of STOMP clients.
@Suite struct STOMPAttackTests {
  @Test func `no destination reaches another application`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      for destination in [
        "/topic/../closed/c", "/topic/closed/c", "/topic//closed/c", "/queue/closed/c",
        "/queue/../closed/c", "/topic/closed\\cc", "/topic/closed%2Fc", "/topic/*",
        "/queue/c/../../closed/c",
      ] {
        try await STOMPPeer.connect(server, server.open) { peer in
          try await peer.send("SUBSCRIBE\nid:1\ndestination:\(destination)\nreceipt:r\n\n")
          try? await peer.send("SEND\ndestination:\(destination)\n\nforged")
          try? await peer.send("SEND\ndestination:/topic/end\nreceipt:end\n\nx")
          try await server.engine.publish(
            Message(channel: Channel("closed/c"), payload: Array("theirs".utf8)))
          while let frame = try await peer.next(), frame["receipt-id"] != "end" {
            #expect(frame.body != Array("theirs".utf8))
          }
        }
      }
      #expect(Set(try await server.bodies(of: "closed/c")) == ["theirs"])
    }
  }

  @Test(arguments: ["ACK", "NACK"])
  func `an acknowledgement of another connection's delivery settles nothing`(command: String)
    async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      let channel = try Channel("shop/jobs")
      try await server.engine.publish(Message(channel: channel, payload: [0x61]))
      try await STOMPPeer.connect(server, server.open) { worker in
        let subscribe = "SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\nreceipt:r\n\n"
        try await worker.send(subscribe)
        var frame = try await worker.next()
        while frame?.command != "MESSAGE" { frame = try await worker.next() }
        let id = try #require(frame?["ack"])
        // The thief has a subscription of its own, with the same number.
        for stolen in [id, "+\(id)", "0\(id)"] {
          try await STOMPPeer.connect(server, server.open) { thief in
            try await thief.send(subscribe)
            _ = try await thief.next()
            try await thief.send("\(command)\nid:\(stolen)\nreceipt:a\n\n")
            #expect(
              try await thief.ending() == "no message with this id waits for its acknowledgement")
          }
        }
        // The message is still the worker's, and done when the worker says so.
        try await worker.send("ACK\nid:\(id)\nreceipt:done\n\n")
        #expect(try await worker.next()?["receipt-id"] == "done")
        #expect(server.server.gate.home?.leases.count == 0)
        try await server.engine.publish(Message(channel: channel, payload: [0x62]))
        #expect(try await worker.next()?.body == [0x62])
      }
    }
  }

  @Test(arguments: [
    ("frames", "the transaction has more than 1000 frames"),
    ("bytes", "the transaction has more than 1048576 bytes"),
    ("transactions", "the connection has 16 transactions"),
  ])
  func `a transaction without end is ended, and nothing of it is done`(
    kind: String, message: String
  ) async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await server.engine.publish(Message(channel: Channel("shop/jobs"), payload: [0x61]))
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\n\n")
        let id = try #require(try await peer.next()?["ack"])
        try await peer.send("BEGIN\ntransaction:t\n\n")
        try await peer.send("ACK\nid:\(id)\ntransaction:t\n\n")
        let send = "SEND\ndestination:/topic/c\ntransaction:t\n\n"
        switch kind {
        case "frames": for _ in 0..<1000 { try await peer.send("\(send)x") }
        case "bytes":
          for _ in 0..<5 { try await peer.send(send + String(repeating: "x", count: 250_000)) }
        default: for number in 0..<16 { try await peer.send("BEGIN\ntransaction:\(number)\n\n") }
        }
        #expect(try await peer.ending() == message)
      }
      #expect(try await server.bodies(of: "shop/c") == [])
      // Its lease went back.
      try await STOMPPeer.connect(server, server.open) { peer in
        try await peer.send("SUBSCRIBE\nid:1\ndestination:/queue/jobs\nack:client\n\n")
        #expect(try await peer.next()?.body == [0x61])
      }
    }
  }
}

/// Guesses at a password, with a clock that the test moves.
@Suite struct PasswordAttackTests {
  private enum Answer: Hashable { case user, wrong, wait, other }

  private final class Clock: Sendable {
    private let time = Mutex(Date())
    var now: Date { time.withLock { $0 } }
    func move(_ seconds: TimeInterval) { time.withLock { $0 += seconds } }
  }

  private static func stomp(
    _ home: OpenHome, _ password: String, from source: LoginSource
  ) async -> Answer {
    do throws(STOMPEnding) {
      let (_, principal) = try await home.authenticate(
        STOMPConnecting(host: "closed", login: "ana", passcode: password), isProtected: true,
        from: source)
      if case .user(let user, _) = principal, user.text == "ana" { return .user }
      return .other
    } catch {
      return [403: .wrong, 429: .wait][error.status] ?? .other
    }
  }

  private static func http(
    _ home: OpenHome, _ password: String, from source: LoginSource, _ entry: DirectoryEntry
  ) async -> Answer {
    let text = Data("ana:\(password)".utf8).base64EncodedString()
    guard let authorization = Authorization.read(["Basic \(text)"]) else { return .other }
    switch await home.login(authorization, to: entry, from: source, isProtected: true) {
    case .principal(.user(let user, _)): return user.text == "ana" ? .user : .other
    case .wrong: return .wrong
    case .wait: return .wait
    default: return .other
    }
  }

  @Test func `a thousand wrong passwords over STOMP and HTTP keep no user out, and cost nine keys`()
    async throws
  {
    try await ServerFixture.run { server in
      let id = server.closed.record.id
      let realm = RealmHasher(key: secret("0123456789abcdef0123456789abcdef"), iterationCount: 10)
      let verifier = try realm.verifier(
        for: Password(secret("right password")), user: Name("ana"), of: id)
      try await server.store.put(user: Name("ana"), verifier, roles: [], of: id)
      let serving = try #require(server.server.gate.home)
      try await serving.refresh()
      let clock = Clock()
      // The home that serves, with a clock of the test.
      let home = OpenHome(
        engine: serving.engine, realtime: serving.realtime, store: serving.store,
        directory: serving.directory, logins: LoginGate(realm, now: { clock.now }),
        operations: ServerOperations(),
        webhooks: WebhookClient(WebhookConfiguration(), on: MultiThreadedEventLoopGroup.singleton),
        now: { clock.now })
      let entry = try #require(home.directory.application(id))
      let thief = LoginSource(try SocketAddress(ipAddress: "192.0.2.1", port: 1))
      let user = LoginSource(try SocketAddress(ipAddress: "192.0.2.2", port: 1))
      var answers: [Answer: Int] = [:]
      for number in 0..<1000 {
        let guess = "wrong \(number)"
        let answer =
          number % 2 == 0
          ? await Self.stomp(home, guess, from: thief)
          : await Self.http(home, guess, from: thief, entry)
        answers[answer, default: 0] += 1
        let stomp = await Self.stomp(home, "right password", from: user)
        let http = await Self.http(home, "right password", from: user, entry)
        #expect(stomp == .user && http == .user, "after \(number + 1) guesses")
        clock.move(0.1)
      }
      // In 100 seconds, 3 without a wait and 6 behind waits; the other protocol is no way around them.
      #expect(answers == [.wrong: 9, .wait: 991])
      // The user's password is cached for a minute.
      #expect(home.logins.derivationCount == 11)
      // Even the right password waits at the source of the guesses, and helps when the wait has ended.
      #expect(await Self.stomp(home, "right password", from: thief) == .wait)
      clock.move(300)
      #expect(await Self.stomp(home, "right password", from: thief) == .user)
    }
  }
}
