import NIOHTTP1
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

extension HostileTests {
  /// Redirects of a hostile server: no request leaves the origin, and credentials even less.
  @Suite struct RedirectTests {
    static let key = "a-secret-auth-key"

    /// Locations that lead elsewhere, or are none; `PORT` stands for the other server's port.
    static let foreign = [
      "http://127.0.0.1:PORT/x", "https://127.0.0.1:PORT/x", "http://localhost:PORT/x",
      "//127.0.0.1:PORT/x", "http://127.0.0.1:OWN@127.0.0.1:PORT/", "http://user@127.0.0.1:PORT/",
      "http:127.0.0.1:PORT/x", "http:/127.0.0.1:PORT/x", "\\\\127.0.0.1:PORT\\x",
      "/\\127.0.0.1:PORT/x",
      "javascript:alert(1)", "file:///etc/passwd", "", "x", "../x", "?y", "http://", "http://[::1",
      "/a b", "/a HTTP/1.1", "/%0d%0aX:y", "/ä", "http://127.0.0.1:0/",
      "http://127.0.0.1:99999999999999999999/", "http://2130706433:PORT/",
      "/" + String(repeating: "a", count: 70_000),
    ]

    @Test(arguments: foreign)
    func `a redirect to another origin, or to none, is refused, and the other gets nothing`(
      location: String
    ) async throws {
      try await HostileServer.run {
        $0.wait()
      } _: { other in
        let location = location.replacing("PORT", with: "\(other.port)")
        try await HostileServer.run { peer in
          while peer.head() != nil {
            peer.send(answer("307 Temporary Redirect", ["Location: \(location)"]))
          }
        } _: { server in
          var configuration = PubNubConfiguration(
            server: server.url, subscribeKey: "sub", publishKey: "pub", userID: "u")
          configuration.authKey = SharedSecret(secret(Self.key))
          let client = try PubNubClient(configuration)
          let error = await failure { try await client.time() }
          #expect(error?.code == .refusedRedirect, "\(error?.description ?? "no error")")
          #expect(server.text.contains(Self.key))
          #expect(other.connectionCount == 0 && server.text.components("GET ") == 1)
        }
      }
    }

    @Test func `redirects in a loop end after five`() async throws {
      try await HostileServer.run { peer in
        while let head = peer.head() {
          peer.send(
            answer("302 Found", [head.contains("/a") ? "Location: /b?c#d" : "Location: /a"]))
        }
      } _: { server in
        let error = await failure { try await Transport.to(server.url).get() }
        #expect(error?.code == .refusedRedirect)
        #expect(server.text.components("GET ") == 6)
        #expect(!server.text.contains("#"))
      }
    }

    @Test func `credentials that were accepted go to no other origin`() async throws {
      try await HostileServer.run {
        $0.wait()
      } _: { other in
        try await HostileServer.run { peer in
          while let head = peer.head() {
            if !head.contains("Authorization") {
              peer.send(answer("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""]))
            } else if head.contains("/leave") {
              peer.send(answer("302 Found", ["Location: http://127.0.0.1:\(other.port)/"]))
            } else {
              peer.send(answer("200 OK"))
            }
          }
        } _: { server in
          let transport = try Transport.to(
            server.url, .system, challenges { _ in ("user", "password") })
          _ = try await transport.get("/stay")
          let error = await failure { try await transport.get("/leave") }
          #expect(error?.code == .refusedRedirect && other.connectionCount == 0)
        }
      }
    }

    @Test(arguments: ["POST", "DELETE"])
    func `a request that changes something follows no redirect`(method: String) async throws {
      try await HostileServer.run { peer in
        while peer.head() != nil { peer.send(answer("308 Permanent Redirect", ["Location: /y"])) }
      } _: { server in
        var request = ClientRequest(target: RequestTarget(path: "/x"))
        request.method = .init(rawValue: method)
        let response = try await Transport.to(server.url).send(request)
        #expect(response.status == 308 && !server.text.contains("/y"))
      }
    }

    @Test func `secrets go by plain HTTP to this machine alone`() async throws {
      // An address for documentation (RFC 5737), to which nothing must go.
      let secretText = SharedSecret(secret(Self.key))
      var target = RequestTarget(path: "/x")
      target.add("auth", secretText)
      for request in [
        ClientRequest(target: target),
        ClientRequest(
          target: RequestTarget(path: "/x"), headers: [("X-Token", SecretText(secretText))]),
      ] {
        let transport = try Transport("http://192.0.2.1:9", .system, nil, connectTime: .seconds(2))
        let error = await failure { try await transport.send(request) }
        #expect(error?.code == .invalidArgument)
      }
    }
  }
}

extension String {
  /// How often a text occurs.
  func components(_ part: String) -> Int {
    split(separator: part, omittingEmptySubsequences: false).count - 1
  }
}

/// Challenges whose handler gives a user and a password.
func challenges(
  _ guard: ChallengeGuard = ChallengeGuard(),
  _ login: @escaping @Sendable (LoginRequest) -> (user: String, password: String)?
) -> ClientChallenges {
  ClientChallenges(
    BasicChallengeHandler(
      ClosureLoginHandler { request in
        login(request).map {
          LoginCredentials(user: secret($0.user), password: secret($0.password))
        }
      }), guard: `guard`)
}
