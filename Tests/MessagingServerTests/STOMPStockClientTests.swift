import AccessControl
import ApplicationStore
import Foundation
import MessagingQueue
import TestSupport
import Testing

@testable import MessagingServer

/// stomp.py, unchanged, over each transport and in each version that it speaks.
@Suite(.enabled(if: STOMPClient.python != nil, "stomp.py is not installed"))
struct STOMPStockClientTests {
  private static let tours = ["1.0", "1.1", "1.2"].flatMap { version in
    ["topic", "queue", "transaction", "large"].map { (version: version, scenario: $0) }
  }

  @Test(arguments: Exhaustive.sample(of: tours, oneIn: 3))
  func `the stock client does this over TCP`(version: String, scenario: String) async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPClient.check(scenario, server, server.closed, "tcp", version)
    }
  }

  @Test(arguments: ["1.1", "1.2"], ["nack", "heartbeat"])
  func `versions with NACK and heart-beats use them`(version: String, scenario: String) async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      try await STOMPClient.check(scenario, server, server.closed, "tcp", version)
    }
  }

  @Test(arguments: ["topic", "queue", "nack", "transaction", "heartbeat", "large"])
  func `the stock client does this over a WebSocket`(scenario: String) async throws {
    try await ServerFixture.run { server in
      try await STOMPClient.check(scenario, server, server.closed, "ws", "1.2")
    }
  }

  @Test func `rights decide in a closed application, and a revoked token ends its connection`()
    async throws
  {
    try await ServerFixture.runWithSTOMP { server in
      let application = server.closed.record.id
      let hash = try server.store.keys.hasher.hash(Array("worker".utf8), of: application)
      try await server.store.put([
        Grant(
          [.lease],
          on: Grant.Key(.channel(ChannelName("a")), of: application, holder: .authKey(hash)),
          minutes: 0, start: Date())
      ])
      let token = try await server.token(for: "t")
      let signer = try await server.store.signer(of: application)
      guard case .token(let read) = try signer.read(token.utf8) else {
        Issue.record("the token is not valid")
        return
      }
      async let checks: Void = STOMPClient.check(
        "access", server, server.closed, "tcp", "1.2", "auth=worker", "token=\(token)")
      try await eventually { try await !server.bodies(of: "closed/ready").isEmpty }
      try await server.store.revoke(read.digest, of: application, until: read.end)
      try await checks
    }
  }

  @Test func `a user logs in with a password`() async throws {
    try await ServerFixture.runWithSTOMP { server in
      try await server.grant(.write, "a", .user(Name("ana")))
      try await server.put(user: "ana", "right password")
      try await STOMPClient.check("login", server, server.closed, "tcp", "1.2")
    }
  }

  @Test func `a user logs in at the handshake of a WebSocket`() async throws {
    try await ServerFixture.run { server in
      try await server.grant([.read, .write], "a", .user(Name("ana")))
      try await server.put(user: "ana", "right password")
      let token = try await server.token(for: "t")
      try await STOMPClient.check(
        "handshake", server, server.closed, "ws", "1.2", "token=\(token)")
    }
  }
}

/// Runs scenarios of `stomp_client.py`.
enum STOMPClient {
  static let python = Program.python(
    with: "stomp", variable: "DATAVAULT_STOMP_PYTHON", environment: "stomp")

  /// The arguments of a scenario.
  static func arguments(
    _ scenario: String, _ server: ServerFixture, _ keys: ServerFixture.Keys, _ transport: String,
    _ version: String
  ) -> [String] {
    [
      "-W", "ignore", Repository.path("Tests/ReferenceReaders/stomp_client.py"), scenario,
      transport == "ws" ? server.origin : server.stompOrigin, transport, version,
      "app=\(keys.record.name)", "pub=\(keys.publish)", "secret=\(keys.secretKey)",
    ]
  }

  /// Expects that every check of a scenario succeeds, and that there are some.
  static func check(
    _ scenario: String, _ server: ServerFixture, _ keys: ServerFixture.Keys, _ transport: String,
    _ version: String, _ more: String...
  ) async throws {
    let python = try #require(python)
    let arguments = arguments(scenario, server, keys, transport, version) + more
    let program = try await PubNubClient.onBlockingThread { try Program.run(python, arguments) }
    expect(program.text, program.errors)
    #expect(program.status == 0)
  }

  static func expect(_ text: String, _ errors: String) {
    let lines = text.split(separator: "\n")
    #expect(!lines.contains { $0.hasPrefix("not ok") }, "\(text)\n\(errors)")
    #expect(lines.contains { $0.hasPrefix("ok") }, "\(errors)")
  }
}

extension ServerFixture {
  /// Runs `body` beside a server that speaks STOMP too.
  static func runWithSTOMP(
    _ identity: TLSIdentity? = nil, _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    try await run(
      { configuration in
        configuration.stompListening = [.init(ListenAddress("127.0.0.1:0")!, identity: identity)]
      }, body)
  }

  /// `HOST:PORT` of STOMP.
  var stompOrigin: String {
    String((stompURL ?? "").drop { $0 != "/" }.dropFirst(2))
  }
}
