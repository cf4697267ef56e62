import ApplicationStore
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import MessagingServer

/// Webhooks over TLS, to a receiver with a private authority.
@Suite struct WebhookTLSTests {
  private let authority: TestAuthority

  init() async throws { authority = try await TestAuthority() }

  private func post(to host: String, trusts: Bool = true) async throws -> [WebhookReceiver.Request]
  {
    let receiver = try await WebhookReceiver.start(tls: authority.identity().context)
    var configuration = WebhookConfiguration()
    configuration.allowsPrivate = true
    if trusts { configuration.trustRoots = .file(authority.path) }
    configuration.resolver = { _ in [try SocketAddress(ipAddress: "127.0.0.1", port: 0)] }
    let client = WebhookClient(configuration, on: MultiThreadedEventLoopGroup.singleton)
    let url = try WebhookURL("https://\(host):\(receiver.port)/hook")
    try await client.post(Array("{}".utf8), to: url, headers: [("X-A", "b")])
    return receiver.requests
  }

  @Test(arguments: ["receiver.example", "127.0.0.1"])
  func `a receiver whose certificate has its host is sent to`(host: String) async throws {
    try await authority.makeCertificate(
      "x", for: host.contains("example") ? "DNS:\(host)" : "IP:\(host)")
    let requests = try await post(to: host)
    #expect(requests.map(\.text) == ["{}"] && requests.first?.headers["X-A"] == "b")
  }

  @Test(arguments: ["other.example", "127.0.0.1"])
  func `a certificate for another host is refused, and nothing is sent`(host: String) async throws {
    try await authority.makeCertificate("x", for: "DNS:receiver.example")
    await #expect(throws: WebhookFailure.insecure) { try await post(to: host) }
  }

  @Test func `a certificate of an authority that is not trusted is refused`() async throws {
    try await authority.makeCertificate("x", for: "DNS:receiver.example")
    await #expect(throws: WebhookFailure.insecure) {
      try await post(to: "receiver.example", trusts: false)
    }
  }
}
