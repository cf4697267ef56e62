import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessagingQueue
import NIOCore
import NIOEmbedded
import StrictJSON
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// Connections of Pusher's protocol against a server, frame by frame.
@Suite struct PusherConnectionTests {
  /// Subscribes to a presence channel as a user.
  private func enter(
    _ socket: PusherSocket, _ channel: String, _ userID: String, _ keys: ServerFixture.Keys
  ) async throws {
    let data = #"{"user_id":"\#(userID)"}"#
    let auth = try keys.pusherAuth("\(try socket.socketID):\(channel):\(data)")
    try await socket.subscribe(channel, auth: auth, data: data)
  }

  // MARK: - Connecting

  @Test(arguments: [
    ("/app/none?protocol=7", 4001), ("/app/KEY", 4008), ("/app/KEY?protocol=4", 4007),
    ("/app/KEY?protocol=x", 4006),
  ])
  func `a refusal comes after the upgrade, as an error without a channel and a close code`(
    target: String, code: Int
  ) async throws {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.open(
        server, target.replacing("KEY", with: server.open.subscribe))
      #expect(try await socket.closeCode() == code)
      #expect(socket.answer.hasPrefix("HTTP/1.1 101"))
      let text = try #require(socket.texts.first)
      #expect(text.hasPrefix(#"{"event":"pusher:error","data":{"code":\#(code),"message":""#))
      #expect(socket.texts.count == 1)
    }
  }

  @Test func `a subprotocol is chosen when it is offered, and not demanded`() async throws {
    try await ServerFixture.run { server in
      let target = "/base/path/app/\(server.open.subscribe)?client=x&protocol=7"
      let one = try await PusherSocket.open(
        server, target, headers: "Sec-WebSocket-Protocol: x, pusher-channels-protocol-7\r\n")
      _ = try await one.next("pusher:connection_established")
      #expect(one.answer.contains("Sec-WebSocket-Protocol: pusher-channels-protocol-7\r\n"))
      let other = try await PusherSocket.open(server, target)
      _ = try await other.next("pusher:connection_established")
      #expect(!other.answer.contains("Sec-WebSocket-Protocol"))
      #expect(try one.socketID != other.socketID)
    }
  }

  @Test func `other WebSockets and broken handshakes are refused by HTTP`() async throws {
    try await ServerFixture.run { server in
      let other = try await PusherSocket.open(server, "/ws")
      _ = try await other.wait("the end") { $0.last == .gone ? true : nil }
      #expect(other.answer.hasPrefix("HTTP/1.1 404"))
      let broken = try await server.send(
        "GET", "/app/\(server.open.subscribe)?protocol=7", headers: [("Upgrade", "websocket")])
      #expect(broken.status == 400)
      #expect(broken.text.hasPrefix(#"{"error":"#))
    }
  }

  // MARK: - Endings

  @Test func `a lock of the vault ends connections with 4100, and an unlock lets them in again`()
    async throws
  {
    try await ServerFixture.run({ $0.engine.unlockTimeout = .seconds(60) }) { server in
      let before = try await PusherSocket.connect(server, server.open)
      await server.vault.lock()
      #expect(try await before.closeCode() == 4100)
      let start = ContinuousClock.now
      let during = try await PusherSocket.open(server, "/app/\(server.open.subscribe)?protocol=7")
      #expect(try await during.closeCode() == 4100)
      #expect(during.texts.count == 1)
      #expect(ContinuousClock.now - start > .seconds(3))
      let refused = try await server.send("POST", "/apps/1/events", body: Array("{}".utf8))
      #expect(refused.status == 503)
      #expect(refused.text == #"{"error":"the server is locked"}"#)
      let waiting = try await PusherSocket.open(server, "/app/\(server.open.subscribe)?protocol=7")
      try await server.vault.unlock(with: credentials("secret"))
      _ = try await waiting.next("pusher:connection_established")
      #expect(waiting.texts.count == 1)
    }
  }

  @Test func `a stop of the server ends connections with 4200`() async throws {
    let kept = Mutex<PusherSocket?>(nil)
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      kept.withLock { $0 = socket }
    }
    let socket = try #require(kept.withLock { $0 })
    #expect(try await socket.closeCode() == 4200)
    #expect(socket.texts.last?.hasPrefix(#"{"event":"pusher:error","data":{"code":4200,"#) == true)
  }

  /// A transport that keeps what it is given.
  private final class Kept: ClientTransport {
    let eventLoop: any EventLoop
    let isProtected = true
    let source = LoginSource(nil)
    let isIdle = true
    let memory: MemoryAccount? = nil
    var sent: [String] = []

    init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

    func send(_ bytes: [UInt8]) { sent.append(String(decoding: bytes, as: UTF8.self)) }
    func send(_ bytes: [UInt8], whenSent: @escaping () -> Void) { send(bytes) }
    func setReading(_ isReading: Bool) {}
    func close(_ code: UInt16, _ reason: String) { sent.append("\(code)") }
  }

  @Test func `a client that answers no ping is ended with 4201, once`() throws {
    let target = RawRequest(method: "GET", target: Array("/app/k?protocol=7".utf8))
    let connection = PusherConnection(
      try #require(PusherConnecting(target)), .anonymous, PusherService(HomeGate()))
    let kept = Kept(EmbeddedEventLoop())
    connection.begin(kept)
    connection.clientIsSilent()
    connection.clientIsSlow()
    connection.end()
    #expect(
      kept.sent == [
        #"{"event":"pusher:error","data":{"code":4201,"message":"the client answers no ping"}}"#,
        "4201",
      ])
  }

  @Test func `a client that does not read is ended with 4100`() async throws {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("a")
      _ = try await socket.next("pusher_internal:subscription_succeeded")
      try await socket.setReading(false)
      let channel = try Channel("shop/a")
      let payload = [UInt8](repeating: 0x78, count: 32_000)
      for _ in 0..<20 {
        try await server.engine.publish(
          (0..<50).map { _ in Message(channel: channel, payload: payload) })
      }
      try await eventually { server.server.pusherConnectionCount == 0 }
      try await socket.setReading(true)
      #expect(try await socket.closeCode() == 4100)
    }
  }

  @Test func `a removal of the application ends its connections with 4001`() async throws {
    try await ServerFixture.run { server in
      let socket = try await PusherSocket.connect(server, server.open)
      let other = try await PusherSocket.connect(server, server.closed)
      try await server.store.removeApplication(server.open.record.id)
      #expect(try await socket.closeCode() == 4001)
      try await other.send(#"{"event":"pusher:ping"}"#)
      _ = try await other.next("pusher:pong")
    }
  }

  // MARK: - Presence

  @Test func `a user joins with the first connection, and leaves with the last`() async throws {
    try await ServerFixture.run { server in
      let watcher = try await PusherSocket.connect(server, server.open)
      try await enter(watcher, "presence-a", "w", server.open)
      _ = try await watcher.next("pusher_internal:subscription_succeeded")
      let (one, two) = (
        try await PusherSocket.connect(server, server.open),
        try await PusherSocket.connect(server, server.open)
      )
      for socket in [one, two] {
        try await enter(socket, "presence-a", "u", server.open)
        let roster = try await socket.next("pusher_internal:subscription_succeeded")
        #expect(roster.contains(#"\"ids\":[\"w\",\"u\"]"#))
        #expect(roster.contains(#"\"count\":2"#))
      }
      try await one.send(#"{"event":"pusher:unsubscribe","data":{"channel":"presence-a"}}"#)
      try await one.send(#"{"event":"pusher:ping"}"#)
      _ = try await one.next("pusher:pong")
      try await two.close()
      _ = try await watcher.next("pusher_internal:member_removed", on: "presence-a")
      let events = watcher.texts.filter { $0.contains("pusher_internal:member_") }
      #expect(
        events == [
          #"{"event":"pusher_internal:member_added","channel":"presence-a","data":"{\"user_id\":\"u\",\"user_info\":null}"}"#,
          #"{"event":"pusher_internal:member_removed","channel":"presence-a","data":"{\"user_id\":\"u\"}"}"#,
        ])
      #expect(!(one.texts + two.texts).contains { $0.contains("pusher_internal:member_") })
    }
  }

  @Test func `a right that ends by time is found without a change`() throws {
    let sessions = SessionRegistry<PusherConnection>()
    let application = try ApplicationID(1)
    let now = Date()
    let handles = try (0..<3).map { number in
      let handle = SessionHandle(
        try idleConnection(), application: application, on: EmbeddedEventLoop())
      handle.nextEnd = [nil, now, now + 1][number]
      #expect(sessions.add(handle))
      return handle
    }
    #expect(sessions.handles(concernedBy: [], at: now).map { $0 === handles[1] } == [true])
    #expect(sessions.handles(concernedBy: [.application(application)], at: now).count == 3)
    let other = try AccessChange.application(ApplicationID(2))
    #expect(sessions.handles(concernedBy: [other], at: now).count == 1)
    withExtendedLifetime(handles) {}
  }

  private func idleConnection() throws -> PusherConnection {
    let target = RawRequest(method: "GET", target: Array("/app/k".utf8))
    return PusherConnection(
      try #require(PusherConnecting(target)), .anonymous, PusherService(HomeGate()))
  }

  @Test func `a full presence channel refuses a new user, and takes one who is there`() throws {
    let hub = PusherHub()
    let loop = EmbeddedEventLoop()
    let connection = try idleConnection()
    let application = try ApplicationID(1)
    let channel = try #require(PusherChannel("presence-a"))
    func join(as user: String) throws(PusherRefusal) -> PusherRoster? {
      let handle = SessionHandle(connection, application: application, on: loop)
      return try hub.join(handle, channel, PusherMember(id: user, info: []))
    }
    for number in 0..<100 { _ = try join(as: "\(number)") }
    #expect(throws: PusherRefusal.limit("the channel has 100 members")) { try join(as: "x") }
    #expect(try join(as: "7")?.count == 100)
    #expect(hub.occupancy(of: "presence-a", in: application).subscriptionCount == 101)
  }

  // MARK: - Other protocols

  @Test func `PubNub's messages reach Pusher's clients, and client events PubNub's as signals`()
    async throws
  {
    try await ServerFixture.run { server in
      let (pub, sub) = (server.open.publish, server.open.subscribe)
      let (one, two) = (
        try await PusherSocket.connect(server, server.open),
        try await PusherSocket.connect(server, server.open)
      )
      for socket in [one, two] {
        let auth = try server.open.pusherAuth("\(try socket.socketID):private-a")
        try await socket.subscribe("private-a", auth: auth)
        _ = try await socket.next("pusher_internal:subscription_succeeded")
      }
      let grant = try Grant(
        [.read, .write],
        on: .init(.application, of: server.open.record.id, holder: .authKey(hash(server))),
        minutes: 0, start: Date())
      try await server.store.put([grant])
      try await server.refresh()
      let auth = "auth=key&uuid=admin"
      let first = try await server.get("/v2/subscribe/\(sub)/private-a/0?tt=0&\(auth)")
      let place = try #require(ServerFixture.place(in: first.text))
      async let poll = server.get("/v2/subscribe/\(sub)/private-a/0?tt=\(place)&\(auth)")
      try await server.waitForPolls(1)
      try await one.send(
        #"{"event":"client-x","channel":"private-a","data":{"n":1},"user_id":"admin"}"#)
      #expect(
        try await two.next("client-x")
          == #"{"event":"client-x","channel":"private-a","data":"{\"n\":1}"}"#)
      let signal = try await poll
      #expect(signal.text.contains(#""e":1"#))
      #expect(signal.text.contains(#""d":{"n":1}"#))
      _ = try await server.get(
        "/publish/\(pub)/\(sub)/0/private-a/0/%7B%22m%22%3A2%7D?\(auth)")
      #expect(
        try await one.next("message")
          == #"{"event":"message","channel":"private-a","data":"{\"m\":2}"}"#)
      #expect(!one.texts.contains { $0.contains("client-x") })
      let history = try await server.get(
        "/v2/history/sub-key/\(sub)/channel/private-a?\(auth)")
      #expect(history.text.hasPrefix(#"[[{"m":2}],"#))
    }
  }

  private func hash(_ server: ServerFixture) throws -> AuthKeyHash {
    try server.store.keys.hasher.hash(Array("key".utf8), of: server.open.record.id)
  }

  // MARK: - Hostile input

  @Test func `hostile frames end their connection alone`() async throws {
    let frozen = NIODeadline.now()
    try await ServerFixture.run({ $0.uptime = { frozen } }) { server in
      let calm = try await PusherSocket.connect(server, server.open)
      let large = try await PusherSocket.connect(server, server.open)
      try await large.send(0x81, [UInt8](repeating: 0x78, count: 200_000))
      #expect(try await large.closeCode() == 1009)
      let broken = try await PusherSocket.connect(server, server.open)
      try await broken.send(0x81, [0xFF])
      #expect(try await broken.closeCode() == 1007)
      let deep = try await PusherSocket.connect(server, server.open)
      try await deep.send(String(repeating: "[", count: 100_000))
      #expect(try await deep.next("pusher:error").contains(#""code":null"#))
      let flood = try await PusherSocket.connect(server, server.open)
      for _ in 0..<2_500 { try? await flood.send(#"{"event":"pusher:ping"}"#) }
      #expect(try await flood.closeCode() == 4100)
      let many = try await PusherSocket.connect(server, server.open)
      for number in 0..<501 { try await many.subscribe("a\(number)") }
      _ = try await many.next("pusher:subscription_error", on: "a500")
      try await calm.send(#"{"event":"pusher:ping"}"#)
      _ = try await calm.next("pusher:pong")
      for socket in [calm, large, broken, deep, flood, many] { try? await socket.close() }
      try await eventually { server.server.pusherConnectionCount == 0 }
    }
  }
}
