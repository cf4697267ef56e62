import MessageCipher
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// The STOMP client and RabbitMQ itself.
@Suite(
  .timeLimit(.minutes(10)), .enabled(if: RabbitMQServer.isAvailable, RabbitMQServer.skipReason),
  .rabbitMQ)
struct RabbitMQTests {
  private func client(
    passcode: String = "guest", _ change: (inout STOMPConfiguration) -> Void = { _ in }
  ) throws -> STOMPClient {
    let server = try #require(WithRabbitMQ.server)
    var configuration = STOMPConfiguration(
      server: "stomp://127.0.0.1:\(server.port)", application: "/",
      login: .credentials(login: "guest", passcode: SharedSecret(secret(passcode))))
    configuration.backoff = Backoff(first: .milliseconds(20), maximum: .milliseconds(40))
    change(&configuration)
    return try STOMPClient(configuration)
  }

  private func messages(
    _ count: Int, of subscription: STOMPSubscription
  ) async throws -> [STOMPMessage] {
    var messages: [STOMPMessage] = []
    for try await case .message(let message) in subscription {
      messages.append(message)
      if messages.count == count { break }
    }
    return messages
  }

  private func bodies(_ messages: [STOMPMessage]) throws -> [[UInt8]] {
    try messages.map { try $0.content.get() }
  }

  @Test func `messages of a queue come in order with their bodies and headers`() async throws {
    let client = try client()
    let sent: [[UInt8]] = [[], [0, 1, 0xFF], Array("größer ✓\n".utf8)]
    for body in sent {
      try await client.send(
        body, to: "/queue/a", contentType: "text/x", headers: ["a:b\\c": "\r✓: \\n\n"])
    }
    // Without its subscription, a message cannot be acknowledged.
    let subscription = try await client.subscribe(to: "/queue/a")
    let messages = try await messages(3, of: subscription)
    #expect(try bodies(messages) == sent)
    #expect(messages.allSatisfy { $0.contentType == "text/x" && !$0.isRedelivered })
    #expect(messages.allSatisfy { $0.headers["a:b\\c"] == "\r✓: \\n\n" && $0.attempt == nil })
    for message in messages { try await message.acknowledge() }
    await client.close()
  }

  @Test func `what was acknowledged or rejected never comes again, and what was released does`()
    async throws
  {
    let client = try client()
    for body in 1...3 { try await client.send([UInt8(body)], to: "/queue/b") }
    let subscription = try await client.subscribe(to: "/queue/b", prefetch: 3)
    let first = try await messages(3, of: subscription)
    try await first[0].acknowledge()
    try await first[1].reject()
    try await first[2].release()
    let again = try await messages(1, of: subscription)
    #expect(try bodies(again) == [[3]])
    #expect(again[0].isRedelivered)
    let twice = await #expect(throws: MessagingClientError.self) {
      try await first[0].acknowledge()
    }
    #expect(twice?.code == .invalidArgument)
    // What is not acknowledged is for another client, once this one has gone.
    await client.close()
    let other = try self.client()
    let rest = try await other.subscribe(to: "/queue/b")
    let third = try await messages(1, of: rest)[0]
    #expect(try third.content.get() == [3])
    try await third.acknowledge()
    try await other.send([4], to: "/queue/b")
    #expect(try bodies(try await messages(1, of: rest)) == [[4]])
    await other.close()
  }

  @Test func `no more messages come than the prefetch allows`() async throws {
    let client = try client()
    for body in 1...3 { try await client.send([UInt8(body)], to: "/queue/c") }
    let subscription = try await client.subscribe(to: "/queue/c", prefetch: 1)
    for body in 1...3 {
      let message = try await messages(1, of: subscription)[0]
      #expect(try message.content.get() == [UInt8(body)])
      try await message.acknowledge()
    }
    await client.close()
  }

  @Test func `a transaction is done whole, or not at all`() async throws {
    struct Stopped: Error {}
    let client = try client()
    try await client.send([1], to: "/queue/d")
    let orders = try await client.subscribe(to: "/queue/d")
    let order = try await messages(1, of: orders)[0]
    await #expect(throws: Stopped.self) {
      try await client.transaction { transaction in
        try transaction.send([9], to: "/queue/e")
        try transaction.acknowledge(order)
        throw Stopped()
      }
    }
    try await client.transaction { transaction in
      try transaction.send([2], to: "/queue/e")
      try transaction.send([3], to: "/queue/e")
      try transaction.acknowledge(order)
    }
    let sent = try await messages(2, of: client.subscribe(to: "/queue/e"))
    #expect(try bodies(sent) == [[2], [3]])
    await orders.unsubscribe()
    try await client.send([4], to: "/queue/d")
    #expect(try bodies(try await messages(1, of: client.subscribe(to: "/queue/d"))) == [[4]])
    await client.close()
  }

  @Test func `a topic reaches all its subscribers`() async throws {
    let clients = try [client(), client()]
    let subscriptions = try await [
      clients[0].subscribe(to: "/topic/news"), clients[1].subscribe(to: "/topic/news"),
    ]
    try await clients[0].send([1], to: "/topic/news")
    for subscription in subscriptions {
      #expect(try bodies(try await messages(1, of: subscription)) == [[1]])
    }
    for client in clients { await client.close() }
  }

  @Test func `a wrong password is unauthenticated, and a user can correct it`() async throws {
    let wrong = try client(passcode: "wrong")
    let error = await #expect(throws: MessagingClientError.self) {
      try await wrong.send([1], to: "/queue/f")
    }
    #expect(error?.code == .unauthenticated)
    let refusalCounts = Mutex<[Int]>([])
    let corrected = try client {
      $0.login = .handler(
        ClosureLoginHandler { request in
          refusalCounts.withLock { $0.append(request.refusalCount) }
          return LoginCredentials(
            user: secret("guest"), password: secret(request.refusalCount == 0 ? "wrong" : "guest"))
        })
    }
    try await corrected.send([1], to: "/queue/f")
    #expect(refusalCounts.withLock { $0 } == [0, 1])
    await corrected.close()
  }

  @Test func `what RabbitMQ refuses has its reason, and the client goes on`() async throws {
    let client = try client()
    let missing = await #expect(throws: MessagingClientError.self) {
      _ = try await client.subscribe(to: "/exchange/missing/key")
    }
    #expect(missing?.code == .refused, "\(missing?.description ?? "")")
    let destination = await #expect(throws: MessagingClientError.self) {
      try await client.send([1], to: "/unknown/g")
    }
    // RabbitMQ does not say which frame it refuses.
    #expect(destination?.code == .outcomeUnknown, "\(destination?.description ?? "")")
    #expect(destination?.message.contains("Unknown destination") == true)
    let reserved = await #expect(throws: MessagingClientError.self) {
      _ = try await client.subscribe(to: "/queue/amq.g")
    }
    #expect(reserved?.code == .forbidden, "\(reserved?.description ?? "")")
    try await client.send([1], to: "/queue/g")
    await client.close()
  }

  @Test func `encrypted bodies pass RabbitMQ, which has no key`() async throws {
    let cipher = try MessageCipher(key: SecretBytes.random(byteCount: 32))
    let client = try client { $0.cipher = cipher }
    let sent = [Array(#"{"card":"4711"}"#.utf8), [0, 1, 2]]
    for body in sent { try await client.send(body, to: "/queue/h") }
    let reader = try self.client()
    let stored = try await messages(2, of: reader.subscribe(to: "/queue/h"))
    #expect(try bodies(stored).allSatisfy { !sent.contains($0) && $0.count > 40 })
    await reader.close()
    #expect(try bodies(try await messages(2, of: client.subscribe(to: "/queue/h"))) == sent)
    await client.close()
  }
}
