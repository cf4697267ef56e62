import Foundation
import TestSupport
import Testing

@testable import MessagingServer

/// TLS with a private authority; openssl's client and the stock SDK are the judges.
@Suite struct TLSTests {
  private let authority: TestAuthority

  init() async throws { authority = try await TestAuthority() }

  private func serve(
    _ identity: TLSIdentity, _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    try await ServerFixture.run(
      { configuration in
        configuration.listening = [.init(ListenAddress("127.0.0.1:0")!, identity: identity)]
      }, body)
  }

  private func connect(
    _ server: ServerFixture, _ options: [String], request: String = ""
  ) async throws -> Program {
    try await authority.openssl(
      ["s_client", "-connect", server.origin, "-CAfile", "ca.pem", "-verify_return_error"]
        + options, input: request)
  }

  private func get(
    _ server: ServerFixture, _ target: String
  ) async throws -> (status: Int, text: String) {
    let answer = try await ServerFixture.curl(server.url + target, ["--cacert", authority.path])
    return (answer.status, answer.text)
  }

  @Test func `openssl verifies the chain, and gets TLS 1.3 and 1.2 but nothing older`()
    async throws
  {
    try await authority.makeCertificate("first")
    try await serve(authority.identity()) { server in
      #expect(server.url.hasPrefix("https://127.0.0.1:"))
      for version in ["-tls1_3", "-tls1_2"] {
        let program = try await connect(server, [version])
        #expect(program.text.contains("Verify return code: 0 (ok)"), "\(program.errors)")
        #expect(program.status == 0)
      }
      let old = try await connect(
        server, ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
      #expect(old.status != 0)
    }
  }

  @Test func `TLS 1.2 takes neither an RSA key transport nor a CBC suite`() async throws {
    try await authority.makeCertificate("first")
    try await serve(authority.identity()) { server in
      for suite in [
        "AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES128-SHA",
        "ECDHE-RSA-AES256-SHA384", "DHE-RSA-AES128-GCM-SHA256",
      ] {
        let program = try await connect(server, ["-tls1_2", "-cipher", "\(suite):@SECLEVEL=0"])
        #expect(program.status != 0, "\(suite)")
      }
      let program = try await connect(
        server,
        ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256"])
      #expect(program.status == 0, "\(program.errors)")
    }
  }

  @Test func `a client that offers h2 gets http/1.1`() async throws {
    try await authority.makeCertificate("first")
    try await serve(authority.identity()) { server in
      let program = try await connect(server, ["-alpn", "h2,http/1.1"])
      #expect(program.text.contains("ALPN protocol: http/1.1"))
    }
  }

  @Test(.enabled(if: PubNubClient.python != nil, "pubnub is not installed"))
  func `the stock client publishes and receives through TLS of a private authority`() async throws {
    try await authority.makeCertificate("first")
    try await serve(authority.identity()) { server in
      try await PubNubClient.check(
        "line", server, server.open, "ssl=1", environment: ["SSL_CERT_FILE": authority.path])
    }
  }

  @Test(.enabled(if: PusherClient.python != nil, "pysher and pusher are not installed"))
  func `the stock Pusher clients work through TLS of a private authority, and refuse others`()
    async throws
  {
    try await authority.makeCertificate("first")
    let authority = authority.path
    try await serve(self.authority.identity()) { server in
      for scenario in ["line", "private"] {
        try await PusherClient.check(
          scenario, server, server.open, "ca=\(authority)",
          environment: ["SSL_CERT_FILE": authority])
      }
      try await PusherClient.check("untrusted", server, server.open, "ca=\(authority)")
    }
  }

  @Test(
    .enabled(if: STOMPClient.python != nil, "stomp.py is not installed"),
    arguments: ["1.0", "1.1", "1.2"])
  func `the stock STOMP client works through TLS of a private authority`(version: String)
    async throws
  {
    try await authority.makeCertificate("first")
    try await ServerFixture.runWithSTOMP(authority.identity()) { server in
      #expect(server.stompURL?.hasPrefix("stomps://127.0.0.1:") == true)
      for scenario in ["topic", "queue"] {
        try await STOMPClient.check(
          scenario, server, server.closed, "tls", version, "ca=\(authority.path)")
      }
    }
  }

  @Test func `a rotation serves new connections with the new certificate and ends no open call`()
    async throws
  {
    try await authority.makeCertificate("first")
    let identity = try authority.identity()
    try await serve(identity) { server in
      let target = "/v2/subscribe/\(server.open.subscribe)/c/0"
      let start = try await get(server, "\(target)?tt=0")
      let place = try #require(ServerFixture.place(in: start.text))
      async let poll = get(server, "\(target)?tt=\(place)")
      try await server.waitForPolls(1)
      try await authority.makeCertificate("second")
      try identity.reload()
      let program = try await connect(server, [])
      #expect(program.text.contains("CN = second"))
      _ = try await get(
        server, "/publish/\(server.open.publish)/\(server.open.subscribe)/0/c/0/%22after%22")
      let answer = try await poll
      #expect(answer.status == 200)
      #expect(answer.text.contains("\"d\":\"after\""))
    }
  }

  @Test func `a certificate that cannot be read leaves the former one in use`() async throws {
    try await authority.makeCertificate("first")
    let identity = try authority.identity()
    try Data("no certificate".utf8).write(
      to: URL(fileURLWithPath: authority.scratch.path("server.pem")))
    #expect(throws: ServerError.self) { try identity.reload() }
    try await serve(identity) { server in
      let program = try await connect(server, [])
      #expect(program.text.contains("CN = first"))
    }
  }
}
