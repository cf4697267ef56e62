import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

extension HostileTests {
  /// Servers that do not prove who they are: they get no byte of a request.
  @Suite struct TLSTests {
    private static let key = "a-secret-auth-key"

    private static func client(
      _ url: String, _ trust: ServerTrust, answerTime: Duration = .seconds(2)
    ) throws -> PubNubClient {
      var configuration = PubNubConfiguration(
        server: url, subscribeKey: "sub", publishKey: "pub", userID: "u")
      configuration.authKey = SharedSecret(secret(key))
      configuration.trust = trust
      configuration.answerTime = answerTime
      configuration.backoff = Backoff(first: .milliseconds(1), maximum: .milliseconds(2))
      return try PubNubClient(configuration)
    }

    @Test func `a certificate that is wrong, expired or without authority ends the connection`()
      async throws
    {
      let certificates = try TestCertificates()
      let trust = ServerTrust.authorities(inFile: certificates.authority)
      let other = try TestCertificates()
      let cases = [
        ("another address", try certificates.make("address", for: "IP:127.0.0.2"), trust),
        ("a name", try certificates.make("name", for: "DNS:example.com"), trust),
        ("an expired one", try certificates.make("expired", isExpired: true), trust),
        ("a self-signed one", try certificates.make("self", isSelfSigned: true), trust),
        ("of another authority", try other.make("other"), trust),
        ("no authority of the system", try certificates.make("private"), .system),
      ]
      for (name, tls, trust) in cases {
        try await TLSServer.run(tls, answer("200 OK")) { server, port in
          // Several times: the result does not depend on when the handshake ends.
          for _ in 0..<5 {
            let error = await failure {
              try await Self.client("https://127.0.0.1:\(port)", trust).publish(
                json: [0x31], to: "a")
            }
            #expect(error?.code == .untrustedServer, "\(name): \(error?.description ?? "no error")")
          }
          #expect(server.text.isEmpty, "\(name)")
        }
      }
    }

    @Test func `a name is checked, also of a server with a good certificate`() async throws {
      let certificates = try TestCertificates()
      let trust = ServerTrust.authorities(inFile: certificates.authority)
      try await TLSServer.run(try certificates.make("good"), answer("200 OK", [], "[17]")) {
        server, port in
        let time = try await Self.client("https://127.0.0.1:\(port)", trust).time()
        #expect(time.rawValue == 17)
        #expect(server.text.contains(Self.key))
        let error = await failure {
          try await Self.client("https://localhost:\(port)", trust).time()
        }
        #expect(error?.code == .untrustedServer)
      }
    }

    @Test func `a redirect from TLS to plain HTTP is refused`() async throws {
      let certificates = try TestCertificates()
      let trust = ServerTrust.authorities(inFile: certificates.authority)
      try await HostileServer.run {
        $0.wait()
      } _: { plain in
        let moved = answer("302 Found", ["Location: \(plain.url)/x"])
        try await TLSServer.run(try certificates.make("good"), moved) { server, port in
          let client = try Self.client("https://127.0.0.1:\(port)", trust)
          let error = await failure { try await client.time() }
          #expect(error?.code == .refusedRedirect && plain.connectionCount == 0)
        }
      }
    }

    @Test func `an answer whose end TLS does not confirm is no answer`() async throws {
      let certificates = try TestCertificates()
      let trust = ServerTrust.authorities(inFile: certificates.authority)
      // Its end is the end of the connection, which others on the way can cause.
      try await TLSServer.run(
        try certificates.make("good"), "HTTP/1.1 200 OK\r\n\r\n[17]", truncates: true
      ) { server, port in
        let client = try Self.client("https://127.0.0.1:\(port)", trust)
        let error = await failure { try await client.time() }
        #expect(error?.code == .outcomeUnknown)
      }
    }

    @Test(arguments: [
      "HTTP/1.1 200 OK\r\n\r\n", "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{28}",
      "\u{16}\u{3}\u{3}\u{7F}\u{7F}", "",
    ])
    func `a server that talks no TLS gets nothing of a request`(text: String) async throws {
      try await HostileServer.run { peer in
        _ = peer.read(16)
        peer.send(text)
        if !text.isEmpty { peer.wait() }
      } _: { server in
        let client = try Self.client(
          "https://127.0.0.1:\(server.port)", .system, answerTime: .milliseconds(300))
        let error = await failure { try await client.time() }
        #expect(error?.code == .untrustedServer || error?.code == .cannotConnect)
        // A connection that ends can be tried again; what says that it is no TLS is final.
        if text.isEmpty { #expect(error?.code == .cannotConnect) }
        #expect(!server.text.contains(Self.key) && !server.text.contains("GET"))
        #expect(server.connectionCount == 1)
      }
    }

    @Test(arguments: [false, true])
    func `a STOMP server whose connection is lost before its first byte is tried again`(
      endsAfterHandshake: Bool
    ) async throws {
      func result(_ port: Int, _ trust: ServerTrust) async throws -> MessagingClientError.Code? {
        var configuration = STOMPConfiguration(
          server: "stomps://127.0.0.1:\(port)", application: "shop")
        configuration.trust = trust
        let client = try STOMPClient(configuration)
        let error = await failure { try await client.send([1], to: "/topic/a") }
        await client.close()
        return error?.code
      }
      guard endsAfterHandshake else {
        return try await HostileServer.run { peer in
          _ = peer.read(16)
        } _: { server in
          let code = try await result(server.port, .system)
          #expect(code == .unavailable)
        }
      }
      let certificates = try TestCertificates()
      let trust = ServerTrust.authorities(inFile: certificates.authority)
      try await TLSServer.run(try certificates.make("good"), "", truncates: true) { _, port in
        let code = try await result(port, trust)
        #expect(code == .unavailable)
      }
      try await TLSServer.run(try certificates.make("self", isSelfSigned: true), "") { _, port in
        let code = try await result(port, trust)
        #expect(code == .untrustedServer)
      }
    }

    @Test func `a TLS handshake without end is bounded, and nothing was sent`() async throws {
      try await HostileServer.run {
        $0.wait()
      } _: { server in
        let client = try Self.client(
          "https://127.0.0.1:\(server.port)", .system, answerTime: .milliseconds(200))
        let error = await failure {
          try await client.publish(json: [0x31], to: "a")
        }
        #expect(error?.code == .cannotConnect && server.connectionCount == 1)
      }
    }
  }
}
