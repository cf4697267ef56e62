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

/// Where webhooks go, and what ends an attempt.
@Suite struct WebhookClientTests {
  private func post(
    to url: String, _ configure: (inout WebhookConfiguration) -> Void = { _ in }
  ) async throws {
    var configuration = WebhookConfiguration()
    configure(&configuration)
    let client = WebhookClient(configuration, on: MultiThreadedEventLoopGroup.singleton)
    try await client.post(Array("{}".utf8), to: WebhookURL(url), headers: [])
  }

  @Test(arguments: [
    "https://127.0.0.1", "https://[::1]", "https://10.0.0.1", "https://192.168.1.1",
    "https://100.64.0.1", "https://169.254.169.254", "https://[fd00::1]", "https://[fe80::1]",
    "https://[::ffff:1.1.1.1]", "https://[::ffff:127.0.0.1]", "https://224.0.0.1",
    "https://0.0.0.0",
    // Other spellings of 127.0.0.1.
    "https://127.1", "https://2130706433", "https://0x7f000001", "https://0177.0.0.1",
  ])
  func `a webhook to a private address is refused`(url: String) async throws {
    await #expect(throws: WebhookFailure.refusedAddress) { try await post(to: url) }
  }

  @Test func `a webhook to a name that resolves to a private address is refused`() async throws {
    let receiver = try await WebhookReceiver.start()
    await #expect(throws: WebhookFailure.refusedAddress) {
      try await post(to: "https://localhost:\(receiver.port)")
    }
    // One private address among public ones is enough.
    let mixed = try ["1.1.1.1", "10.0.0.1"].map { try SocketAddress(ipAddress: $0, port: 0) }
    await #expect(throws: WebhookFailure.refusedAddress) {
      try await post(to: "https://example.com") { $0.resolver = { _ in mixed } }
    }
    #expect(receiver.requests.isEmpty)
  }

  @Test func `metadata services, multicast and mapped addresses are refused with the option too`()
    async throws
  {
    for host in ["169.254.169.254", "224.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"] {
      await #expect(throws: WebhookFailure.refusedAddress) {
        try await post(to: "http://\(host)") { $0.allowsPrivate = true }
      }
    }
  }

  @Test func `plain HTTP needs the option`() async throws {
    let receiver = try await WebhookReceiver.start()
    await #expect(throws: WebhookFailure.plainHTTP) { try await post(to: receiver.url) }
    try await post(to: receiver.url) { $0.allowsPrivate = true }
    #expect(receiver.requests.count == 1)
  }

  @Test func `a name is resolved once, and the connection goes to what was checked`() async throws {
    let receiver = try await WebhookReceiver.start()
    let count = Mutex(0)
    try await post(to: "http://receiver.example:\(receiver.port)/a") { configuration in
      configuration.allowsPrivate = true
      configuration.resolver = { host in
        #expect(host == "receiver.example")
        let isFirst = count.withLock { count in
          count += 1
          return count == 1
        }
        return [try SocketAddress(ipAddress: isFirst ? "127.0.0.1" : "169.254.169.254", port: 0)]
      }
    }
    #expect(count.withLock { $0 } == 1)
    #expect(receiver.requests.map { $0.headers["Host"] } == ["receiver.example:\(receiver.port)"])
  }

  @Test func `the next address of a name is tried when one takes no connection`() async throws {
    let receiver = try await WebhookReceiver.start()
    let addresses = try ["127.0.0.2", "127.0.0.1"].map { try SocketAddress(ipAddress: $0, port: 0) }
    try await post(to: "http://receiver.example:\(receiver.port)/a") { configuration in
      configuration.allowsPrivate = true
      configuration.resolver = { _ in addresses }
    }
    #expect(receiver.requests.count == 1)
  }

  @Test(arguments: [301, 302, 303, 307, 308])
  func `a redirect is not followed, and is a failure`(status: Int) async throws {
    let target = try await WebhookReceiver.start()
    let receiver = try await WebhookReceiver.start { _ in
      .init(status: status, headers: [("Location", target.url)])
    }
    await #expect(throws: WebhookFailure.status(status)) {
      try await post(to: receiver.url) { $0.allowsPrivate = true }
    }
    #expect(target.requests.isEmpty && receiver.requests.count == 1)
  }

  @Test func `a host without addresses, and one that takes no connection, are failures`()
    async throws
  {
    await #expect(throws: WebhookFailure.noAddress) {
      try await post(to: "https://example.com") { $0.resolver = { _ in [] } }
    }
    await #expect(throws: WebhookFailure.noAddress) { try await post(to: "https://a.invalid") }
    await #expect(throws: WebhookFailure.unreachable) {
      try await post(to: "http://127.0.0.1:1") { $0.allowsPrivate = true }
    }
  }

  @Test func `of an answer that does not end, the status counts and the rest is not read`()
    async throws
  {
    let receiver = try await WebhookReceiver.start { _ in
      .init(byteCount: 100_000, hasEnd: false)
    }
    try await post(to: receiver.url) { $0.allowsPrivate = true }
    let headers = try await WebhookReceiver.start { _ in
      .init(headers: [("X-Large", String(repeating: "x", count: 100_000))])
    }
    await #expect(throws: WebhookFailure.brokenAnswer) {
      try await post(to: headers.url) { $0.allowsPrivate = true }
    }
  }

  @Test func `a receiver that does not answer, and a lookup that does not end, end an attempt`()
    async throws
  {
    let receiver = try await WebhookReceiver.start { _ in nil }
    await #expect(throws: WebhookFailure.timeout) {
      try await post(to: receiver.url) {
        $0.allowsPrivate = true
        $0.attemptTime = .milliseconds(300)
      }
    }
    await #expect(throws: WebhookFailure.timeout) {
      try await post(to: "https://example.com") {
        $0.attemptTime = .milliseconds(300)
        $0.resolver = { _ in
          // The lookup is slow on purpose.
          try await Task.sleep(for: .seconds(600))
          return []
        }
      }
    }
    let other = try await WebhookReceiver.start { _ in nil }
    let cancelled = Task {
      try await post(to: other.url) { $0.allowsPrivate = true }
    }
    try await other.waitForRequests(1)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }
}

extension ServerFixture {
  /// Adds a webhook, and waits until the server knows it.
  func addWebhook(
    _ url: String, _ events: Set<WebhookEventKind> = Set(WebhookEventKind.allCases), of keys: Keys
  ) async throws {
    let id = keys.record.id
    let added = try await store.put(webhook: WebhookURL(url), events: events, of: id)
    try await eventually { server.gate.home?.directory.webhooks[id]?.contains(added) == true }
  }

  /// The dead letters of all webhooks of the open application.
  func deadWebhooks() async throws -> [DeadLetter] {
    let channel = try WebhookService.channel(of: open.record.id)
    var found: [DeadLetter] = []
    for consumer in try await engine.consumers(of: channel) {
      found += try await engine.deadLetters(of: channel, for: consumer)
    }
    return found
  }

  /// Deliveries to webhooks of the open application that are neither made nor dead letters.
  var waitingWebhookCount: Int {
    get async throws {
      let channel = try WebhookService.channel(of: open.record.id)
      return try await engine.statistics().channels.filter { $0.channel == channel }
        .flatMap(\.consumers).map(\.messageCount).reduce(0, +)
    }
  }
}
