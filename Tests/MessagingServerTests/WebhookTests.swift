import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessagingQueue
import NIOCore
import NIOPosix
import NIOSSL
import StrictJSON
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// Webhooks of a server, with receivers on this machine.
@Suite struct WebhookTests {
  /// A server that sends to this machine, and whose clock a test moves.
  private static func run(
    _ configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    try await ServerFixture.run(
      { configuration in
        configuration.webhooks.allowsPrivate = true
        configure(&configuration)
      }, body)
  }

  private func signature(_ text: String, _ keys: ServerFixture.Keys) throws -> String {
    let bytes = Array(text.utf8)
    let code = try HMAC.sha256(key: secret(keys.secretKey), message: bytes.span.bytes)
    return "\(keys.subscribe):\(code.map { String(format: "%02x", $0) }.joined())"
  }

  private func subscribe(
    _ socket: PusherSocket, _ channel: String, _ keys: ServerFixture.Keys, as user: String? = nil
  ) async throws {
    let data = user.map { #"{"user_id":"\#($0)"}"# }
    let signed = "\(try socket.socketID):\(channel)" + (data.map { ":\($0)" } ?? "")
    try await socket.subscribe(channel, auth: try signature(signed, keys), data: data)
    _ = try await socket.next("pusher_internal:subscription_succeeded", on: channel)
  }

  // MARK: - Events

  @Test(.enabled(if: PusherClient.python != nil, "pysher and pusher are not installed"))
  func `Pusher's package for servers validates each kind of event`() async throws {
    try await Self.run { server in
      let receiver = try await WebhookReceiver.start()
      try await server.addWebhook(receiver.url, of: server.open)
      let socket = try await PusherSocket.connect(server, server.open)
      try await subscribe(socket, "private-a", server.open)
      try await subscribe(socket, "presence-u", server.open, as: "ü")
      try await socket.send(#"{"event":"client-x","channel":"private-a","data":{"n":1}}"#)
      try await socket.send(#"{"event":"client-y","channel":"presence-u","data":"text"}"#)
      _ = try await receiver.waitForEvents(5)
      try await socket.close()
      let id = try socket.socketID
      let events = try await receiver.waitForEvents(8)
      #expect(
        events.prefix(5) == [
          #"{"name":"channel_occupied","channel":"private-a"}"#,
          #"{"name":"channel_occupied","channel":"presence-u"}"#,
          #"{"name":"member_added","channel":"presence-u","user_id":"ü"}"#,
          #"{"name":"client_event","channel":"private-a","event":"client-x","data":"{\"n\":1}","socket_id":"\#(id)"}"#,
          #"{"name":"client_event","channel":"presence-u","event":"client-y","data":"text","socket_id":"\#(id)","user_id":"ü"}"#,
        ])
      #expect(
        Set(events.dropFirst(5)) == [
          #"{"name":"channel_vacated","channel":"private-a"}"#,
          #"{"name":"member_removed","channel":"presence-u","user_id":"ü"}"#,
          #"{"name":"channel_vacated","channel":"presence-u"}"#,
        ])
      let requests = receiver.requests
      #expect(requests.count < 8)
      for request in requests {
        #expect(request.method == "POST" && request.target == "/hook?key=value")
        #expect(request.headers["Content-Type"] == "application/json")
        #expect(request.headers["X-Pusher-Key"] == server.open.subscribe)
        #expect(request.headers["Host"] == "127.0.0.1:\(receiver.port)")
      }
      let validated = try await validate(requests, server.open)
      #expect(validated.count == requests.count)
      for (line, request) in zip(validated, requests) {
        let (found, sent) = (
          try JSONReader.value(Array(line.utf8)), try JSONReader.value(request.body)
        )
        #expect(found == sent)
      }
      // The judge judges: another application's secret, and another body, are refused.
      #expect(try await validate(requests, server.closed).allSatisfy { $0 == "null" })
      let other = WebhookReceiver.Request(
        method: "POST", target: "/", headers: requests[0].headers, body: requests[0].body + [0x20])
      #expect(try await validate([other], server.open) == ["null"])
    }
  }

  /// What Pusher's package makes of each request.
  private func validate(
    _ requests: [WebhookReceiver.Request], _ keys: ServerFixture.Keys
  ) async throws -> [String] {
    let lines = requests.map { request -> String in
      let line: JSONValue = [
        "key": .string(keys.subscribe), "secret": .string(keys.secretKey),
        "header_key": .string(request.headers["X-Pusher-Key"] ?? ""),
        "signature": .string(request.headers["X-Pusher-Signature"] ?? ""),
        "body": .string(request.text),
      ]
      return line.text
    }
    let python = try #require(PusherClient.python)
    let script = Repository.path("Tests/ReferenceReaders/pusher_webhook.py")
    let program = try await PubNubClient.onBlockingThread {
      try Program.run(python, [script], input: Array(lines.joined(separator: "\n").utf8))
    }
    try #require(program.status == 0, "\(program.errors)")
    return program.text.split(separator: "\n").map(String.init)
  }

  @Test func `a signature is that of the published vector`() throws {
    let application = try Application(
      id: ApplicationID(1), name: "a", publishKey: "p", subscribeKey: "278d425bdf160c739803",
      secretKey: SecretKey(secret("7ad3773142a6692b25b8")))
    let body =
      #"{"time_ms":1327078148132,"events":[{"name":"channel_occupied","channel":"my-channel"}]}"#
    #expect(
      try PusherSignature.ofWebhook(Array(body.utf8), under: application)
        == "c19001ae3963ccb13bf618e5b16ba9848e7e74df0993aa0689168e341c6833cf")
  }

  @Test func `each webhook gets the events that it wants, of its application alone`() async throws {
    try await Self.run { server in
      let (all, some, other) = (
        try await WebhookReceiver.start(), try await WebhookReceiver.start(),
        try await WebhookReceiver.start()
      )
      try await server.addWebhook(all.url, of: server.open)
      try await server.addWebhook(some.url, [.memberAdded], of: server.open)
      try await server.addWebhook(other.url, of: server.closed)
      let socket = try await PusherSocket.connect(server, server.open)
      try await subscribe(socket, "presence-a", server.open, as: "u")
      let foreign = try await PusherSocket.connect(server, server.closed)
      try await subscribe(foreign, "private-b", server.closed)
      #expect(try await all.waitForEvents(2).count == 2)
      #expect(
        try await some.waitForEvents(1) == [
          #"{"name":"member_added","channel":"presence-a","user_id":"u"}"#
        ])
      #expect(
        try await other.waitForEvents(1) == [#"{"name":"channel_occupied","channel":"private-b"}"#])
    }
  }

  @Test func `a change of webhooks reaches a running server, and ends deliveries`()
    async throws
  {
    try await Self.run { server in
      let receiver = try await WebhookReceiver.start()
      let added = try await server.store.put(
        webhook: WebhookURL(receiver.url), events: [.channelOccupied], of: server.open.record.id)
      let other = try await WebhookReceiver.start()
      try await server.addWebhook(other.url, [.channelOccupied], of: server.open)
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("a")
      _ = try await receiver.waitForEvents(1)
      let channel = try WebhookService.channel(of: server.open.record.id)
      func isConsumer() async throws -> Bool {
        try await server.engine.consumers(of: channel).contains { $0.name == added.id.description }
      }
      #expect(try await isConsumer())
      try await server.store.removeWebhook(added.id, of: server.open.record.id)
      try await eventually { try await !isConsumer() }
      try await socket.subscribe("b")
      _ = try await other.waitForEvents(2)
      #expect(receiver.events.count == 1)
    }
  }

  @Test func `no client of a protocol reaches the channel of the deliveries`() throws {
    let channel = try WebhookService.channel(of: ApplicationID(1001))
    #expect(!channel.name.contains("/"))
    #expect(try ChannelName(channel.name).isReserved)
    #expect(PusherChannel(channel.name) == nil)
  }

  // MARK: - Durability

  @Test func `a delivery that failed comes again, until its receiver takes it`() async throws {
    try await Self.run { server in
      let count = Mutex(0)
      let receiver = try await WebhookReceiver.start { _ in
        let number = count.withLock { count in
          count += 1
          return count
        }
        return .init(status: [500, 404, 200][min(number, 3) - 1])
      }
      try await server.addWebhook(receiver.url, of: server.open)
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("a")
      try await receiver.waitForRequests(3)
      #expect(Set(receiver.requests.map(\.text)).count == 1)
      try await eventually { try await server.waitingWebhookCount == 0 }
      #expect(receiver.requests.count == 3)
      #expect(try await server.deadWebhooks().isEmpty)
    }
  }

  @Test func `a delivery that waits in the queue survives a lock and an unlock`() async throws {
    try await Self.run({ $0.engine.unlockTimeout = .seconds(60) }) { server in
      let isUp = Mutex(false)
      let receiver = try await WebhookReceiver.start { _ in
        .init(status: isUp.withLock { $0 } ? 200 : 503)
      }
      try await server.addWebhook(receiver.url, of: server.open)
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("a")
      try await receiver.waitForRequests(1)
      await server.vault.lock()
      let before = receiver.requests.count
      isUp.withLock { $0 = true }
      try await server.vault.unlock(with: credentials("secret"))
      try await receiver.waitForRequests(before + 1)
      #expect(receiver.requests.last?.text == receiver.requests.first?.text)
    }
  }

  @Test func `a delivery that waits in the queue survives kill -9 of the server`() async throws {
    let scratch = ScratchFolder()
    let isUp = Mutex(false)
    let receiver = try await WebhookReceiver.start { _ in
      .init(status: isUp.withLock { $0 } ? 200 : 503)
    }
    let program = try ServerProgram(in: scratch, ["--allow-private-webhooks"])
    program.stop()
    let opening = ["--home", program.home, "--password-file", scratch.path("password")]
    let added = try Program.run(
      Program.datavaultd, ["webhook", "add", "shop", receiver.url] + opening)
    try #require(added.status == 0, "\(added.errors)")
    try program.restart()
    let socket = try await PusherSocket.open(
      String(program.url.dropFirst(7)), "/app/\(program.keys.subscribeKey)?protocol=7")
    _ = try await socket.next("pusher:connection_established")
    try await socket.subscribe("a")
    try await receiver.waitForRequests(1)
    program.kill()
    isUp.withLock { $0 = true }
    let before = receiver.requests.count
    try program.restart()
    // The lease of an attempt that was under way ends after 30 seconds.
    try await receiver.waitForRequests(before + 1)
    #expect(receiver.requests.last?.text == receiver.requests.first?.text)
    // What an operator sees has neither the query nor a payload.
    let log = scratch.contents(of: "log") ?? ""
    #expect(!log.contains("key=value") && !log.contains("channel_occupied"))
    for file in try FileManager.default.contentsOfDirectory(atPath: program.home) {
      let bytes = FileManager.default.contents(atPath: program.home + "/" + file) ?? Data()
      #expect(bytes.firstRange(of: Data("channel_occupied".utf8)) == nil)
      #expect(bytes.firstRange(of: Data("/hook?key".utf8)) == nil)
    }
  }

  @Test func `a delivery that cannot be made becomes a dead letter before it is 300 seconds old`()
    async throws
  {
    let offset = Mutex(0.0)
    try await Self.run({ configuration in
      configuration.now = { Date() + offset.withLock { $0 } }
    }) { server in
      let receiver = try await WebhookReceiver.start { _ in .init(status: 500) }
      try await server.addWebhook(receiver.url, of: server.open)
      let socket = try await PusherSocket.connect(server, server.open)
      try await socket.subscribe("a")
      try await receiver.waitForRequests(1)
      #expect(try await server.deadWebhooks().isEmpty)
      // The next attempt would end too late.
      offset.withLock { $0 = 281 }
      let dead = try await eventually { try await server.deadWebhooks().first }
      #expect(dead.payload == receiver.requests.first?.body)
      #expect(dead.failures.first?.reason == "its answer has status 500")
      #expect(try await server.waitingWebhookCount == 0)
    }
  }

  @Test func `a receiver that does not answer holds up neither other applications nor webhooks`()
    async throws
  {
    try await Self.run({ $0.webhooks.attemptTime = .seconds(86_400) }) { server in
      let (slow, quick, other) = (
        try await WebhookReceiver.start { _ in nil }, try await WebhookReceiver.start(),
        try await WebhookReceiver.start()
      )
      try await server.addWebhook(slow.url, of: server.open)
      try await server.addWebhook(quick.url, of: server.open)
      try await server.addWebhook(other.url, of: server.closed)
      let socket = try await PusherSocket.connect(server, server.open)
      for number in 0..<8 {
        try await socket.subscribe("a\(number)")
        _ = try await quick.waitForEvents(number + 1)
      }
      #expect(slow.requests.count == WebhookService.deliveryCount)
      let foreign = try await PusherSocket.connect(server, server.closed)
      try await subscribe(foreign, "private-b", server.closed)
      _ = try await other.waitForEvents(1)
      #expect(slow.requests.count == WebhookService.deliveryCount)
    }
  }
}
