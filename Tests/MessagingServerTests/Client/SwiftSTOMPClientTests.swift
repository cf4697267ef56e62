import AccessControl
import ApplicationStore
import Foundation
import MessagingClient
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// `MessagingClient`'s client of STOMP, against this server, as a stream and as a WebSocket.
@Suite(.timeLimit(.minutes(10))) struct SwiftSTOMPClientTests {
  /// A server, and clients of its open application.
  private struct Setup: Sendable {
    let server: ServerFixture

    func client(
      _ address: String = "stomp", login: String? = nil,
      _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> MessagingClient.STOMPClient {
      var configuration = STOMPConfiguration(
        server: address == "stomp" ? "stomp://\(server.stompOrigin)" : server.url,
        application: server.closed.record.name,
        login: .credentials(
          login: login ?? "ana", passcode: SharedSecret(secret("a password"))))
      configuration.backoff = Backoff(first: .milliseconds(50), maximum: .milliseconds(100))
      change(&configuration)
      return try MessagingClient.STOMPClient(configuration)
    }
  }

  private static func run(_ body: @escaping @Sendable (Setup) async throws -> Void) async throws {
    try await ServerFixture.runWithSTOMP { server in
      let key = Grant.Key(
        .application, of: server.closed.record.id, holder: .user(try Name("ana")))
      try await server.store.put([
        Grant([.read, .write, .lease, .manage], on: key, minutes: 0, start: Date())
      ])
      // The server knows the grant when it knows the user.
      try await server.put(user: "ana", "a password")
      try await body(Setup(server: server))
    }
  }

  private static func messages(
    _ count: Int, of subscription: MessagingClient.STOMPSubscription
  ) async throws -> [STOMPMessage] {
    var messages: [STOMPMessage] = []
    for try await case .message(let message) in subscription {
      messages.append(message)
      if messages.count == count { break }
    }
    return messages
  }

  @Test(arguments: ["stomp", "http"])
  func `messages of a queue come in order with their headers`(_ address: String) async throws {
    try await Self.run { setup in
      let client = try setup.client(address)
      let queue = "/queue/a"
      let bodies: [[UInt8]] = [[], [0, 1, 0xFF], Array("größer ✓\n".utf8)]
      for body in bodies {
        try await client.send(
          body, to: queue, contentType: "text/x: y", headers: ["a:b\\c": "\r✓: \\n\n"])
      }
      let messages = try await Self.messages(3, of: client.subscribe(to: queue))
      #expect(try messages.map { try $0.content.get() } == bodies)
      #expect(messages.allSatisfy { $0.contentType == "text/x: y" && $0.attempt == 1 })
      #expect(messages.allSatisfy { $0.headers["a:b\\c"] == "\r✓: \\n\n" })
      await client.close()
    }
  }

  @Test(arguments: ["stomp", "http"])
  func `a large body and many messages come whole`(_ address: String) async throws {
    try await Self.run { setup in
      let client = try setup.client(address)
      let subscription = try await client.subscribe(to: "/topic/b")
      let body = [UInt8](repeating: 7, count: 200 << 10)
      async let sent: Void = {
        for _ in 0..<20 { try await client.send(body, to: "/topic/b") }
      }()
      for message in try await Self.messages(20, of: subscription) {
        #expect(try message.content.get() == body)
      }
      try await sent
      await client.close()
    }
  }

  @Test func `what was acknowledged never comes again, and what was released does`() async throws {
    try await Self.run { setup in
      let queue = "/queue/c"
      let first = try setup.client()
      for body in 1...3 { try await first.send([UInt8(body)], to: queue) }
      let subscription = try await first.subscribe(to: queue, consumer: "billing", prefetch: 3)
      let leased = try await Self.messages(3, of: subscription)
      try await leased[0].acknowledge()
      try await leased[1].release()
      let again = try await Self.messages(1, of: subscription)
      #expect(try again[0].content.get() == [2])
      #expect(again[0].isRedelivered && again[0].attempt == 2)
      await #expect(throws: MessagingClientError.self) { try await leased[0].acknowledge() }
      try await leased[2].reject()
      try await again[0].acknowledge()
      await first.close()
      let second = try setup.client()
      try await second.send([4], to: queue)
      let rest = try await Self.messages(1, of: second.subscribe(to: queue, consumer: "billing"))
      #expect(try rest[0].content.get() == [4])
      await second.close()
    }
  }

  @Test func `a transaction is done whole`() async throws {
    try await Self.run { setup in
      let client = try setup.client()
      let (orders, invoices) = ("/queue/d", "/queue/e")
      try await client.send([1], to: orders)
      let subscription = try await client.subscribe(to: orders)
      let order = try await Self.messages(1, of: subscription)[0]
      try await client.transaction { transaction in
        try transaction.send([2], to: invoices)
        try transaction.send([3], to: invoices)
        try transaction.acknowledge(order)
      }
      let sent = try await Self.messages(2, of: client.subscribe(to: invoices))
      #expect(try sent.map { try $0.content.get() } == [[2], [3]])
      await subscription.unsubscribe()
      try await client.send([4], to: orders)
      let next = try await Self.messages(1, of: client.subscribe(to: orders))
      #expect(try next[0].content.get() == [4])
      await client.close()
    }
  }

  @Test(arguments: ["stomp", "http"])
  func `refusals are errors with their reason`(_ address: String) async throws {
    try await Self.run { setup in
      let wrong = try setup.client(address, login: "no-user")
      let unauthenticated = await #expect(throws: MessagingClientError.self) {
        try await wrong.send([], to: "/topic/a")
      }
      #expect(unauthenticated?.code == .unauthenticated || unauthenticated?.code == .refused)
      let client = try setup.client(address)
      for destination in ["/queue/a/b", "/exchange/a", "/topic/a-pnpres"] {
        let error = await #expect(throws: MessagingClientError.self) {
          try await client.send([], to: destination)
        }
        #expect(error?.code == .refused)
      }
      let topic = await #expect(throws: MessagingClientError.self) {
        _ = try await client.subscribe(to: "/topic/a", mode: .client)
      }
      #expect(topic?.code == .refused)
      let name = await #expect(throws: MessagingClientError.self) {
        try await client.send([], to: "/topic/a", headers: ["a\nb": "c"])
      }
      #expect(name?.code == .refused && name?.message.contains("the name of a header") == true)
      try await client.send([], to: "/topic/f")
      await client.close()
    }
  }

  @Test func `no server is there`() async throws {
    try await Self.run { setup in
      let client = try setup.client { $0.server = "stomp://127.0.0.1:1" }
      let error = await #expect(throws: MessagingClientError.self) {
        try await client.send([], to: "/topic/a")
      }
      #expect(error?.code == .cannotConnect)
    }
  }

  @Test func `a server without TLS is not trusted`() async throws {
    try await Self.run { setup in
      let address = "stomps://\(setup.server.stompOrigin)"
      let client = try setup.client { $0.server = address }
      let error = await #expect(throws: MessagingClientError.self) {
        try await client.send([], to: "/topic/a")
      }
      #expect(error?.code == .untrustedServer)
    }
  }
}
