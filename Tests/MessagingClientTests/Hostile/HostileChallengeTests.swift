import Foundation
import Synchronization
import Testing

@testable import MessagingClient

extension HostileTests {
  /// A server that challenges without end: the prompts and what is sent are bounded.
  @Suite struct ChallengeTests {
    /// Answers each request by a 401.
    private static func refuse(
      closes: Bool = false, _ field: @escaping @Sendable (Int) -> String
    ) -> @Sendable (HostileServer.Peer) -> Void {
      let number = Mutex(0)
      return { peer in
        while peer.head() != nil {
          let number = number.withLock { number in
            number += 1
            return number
          }
          peer.send(
            answer(
              "401 Unauthorized",
              ["WWW-Authenticate: \(field(number))"] + (closes ? ["Connection: close"] : [])))
          if closes { return }
        }
      }
    }

    /// Counts the prompts.
    private final class Prompts: Sendable {
      private let requests = Mutex<[LoginRequest]>([])
      var all: [LoginRequest] { requests.withLock { $0 } }

      func challenges(
        _ challengeGuard: ChallengeGuard = ChallengeGuard(), isSame: Bool = false
      ) -> ClientChallenges {
        MessagingClientTests.challenges(challengeGuard) { [self] request in
          let count = requests.withLock { requests in
            requests.append(request)
            return requests.count
          }
          return ("user", isSame ? "password" : "password \(count)")
        }
      }
    }

    @Test func `a password that was accepted and is then refused does not go a second time`()
      async throws
    {
      let password = "Authorization: Basic "
      let isChanged = Mutex(false)
      try await HostileServer.run { peer in
        while let head = peer.head() {
          let isRight = head.contains(password) && !isChanged.withLock { $0 }
          peer.send(
            isRight
              ? answer("200 OK")
              : answer("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""]))
        }
      } _: { server in
        let prompts = Prompts()
        let transport = try Transport.to(server.url, .system, prompts.challenges(isSame: true))
        for _ in 0..<2 { #expect(try await transport.get().status == 200) }
        #expect(prompts.all.count == 1)
        isChanged.withLock { $0 = true }
        for _ in 0..<3 {
          let error = await failure { try await transport.get() }
          #expect(error?.code == .unauthenticated)
        }
        // Accepted twice, and refused once.
        #expect(server.text.ranges(of: password).count == 3)
      }
    }

    @Test(arguments: [false, true], [false, true])
    func `a 401 without end asks three times at most, and sends a password once`(
      closes: Bool, isSame: Bool
    ) async throws {
      try await HostileServer.run(Self.refuse(closes: closes) { _ in "Basic realm=\"r\"" }) {
        server in
        let prompts = Prompts()
        let transport = try Transport.to(server.url, .system, prompts.challenges(isSame: isSame))
        for _ in 0..<4 {
          let error = await failure { try await transport.get() }
          #expect(error?.code == .unauthenticated && error?.status == 401)
          #expect(error?.description.contains("password") == false)
        }
        // A handler that gives the same password is asked after its refusal, and its answer is not sent.
        #expect(prompts.all.count <= (isSame ? 5 : 3))
        let sent = server.text.split(separator: "\r\n").filter { $0.hasPrefix("Authorization:") }
        #expect(sent.count == Set(sent).count && sent.count == (isSame ? 1 : 3))
      }
    }

    @Test(arguments: [false, true])
    func `a new realm each time asks sixteen times at most, over all reconnections`(
      closes: Bool
    ) async throws {
      try await HostileServer.run(Self.refuse(closes: closes) { "Basic realm=\"\($0)\"" }) {
        server in
        let prompts = Prompts()
        let challenges = prompts.challenges()
        for _ in 0..<10 {
          // A client each, as after a start; the guard is the application's.
          let transport = try Transport.to(server.url, .system, challenges)
          let error = await failure { try await transport.get() }
          #expect(error?.authentication != nil)
        }
        #expect(prompts.all.count <= ChallengeGuard.maximumRealmCount)
      }
    }

    @Test func `a WebSocket that is refused each time asks no more often than the guard allows`()
      async throws
    {
      try await HostileServer.run(Self.refuse(closes: true) { _ in "Basic realm=\"r\"" }) {
        server in
        let prompts = Prompts()
        var configuration = PusherConfiguration(server: server.url, key: "k")
        configuration.challenges = prompts.challenges()
        configuration.backoff = Backoff(first: .milliseconds(1), maximum: .milliseconds(2))
        let client = try PusherClient(configuration)
        for _ in 0..<4 {
          let error = await failure { try await client.subscribe(to: "a") }
          #expect(error?.code == .unauthenticated)
        }
        #expect(prompts.all.count <= 3)
      }
    }

    @Test func `a connection that ends instead of an answer to the password counts too`()
      async throws
    {
      try await HostileServer.run { peer in
        guard let head = peer.head(), !head.contains("Authorization") else { return }
        peer.send(answer("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""]))
        _ = peer.head()
      } _: { server in
        let prompts = Prompts()
        let transport = try Transport.to(server.url, .system, prompts.challenges())
        for _ in 0..<30 { _ = await failure { try await transport.get() } }
        #expect(prompts.all.count <= ChallengeGuard.Limits().unansweredLimit)
      }
    }

    @Test func `a realm of control characters and marks is shown escaped, behind the origin`()
      async throws
    {
      let realm =
        "\u{202E}gro.elpmaxe\u{202C}\u{0}\u{7F}\u{200B}\u{2028}a\u{300}\u{301}\u{302}\u{303}\u{9B}2J"
      for control in ["", "\u{1B}[2J"] {
        let field = "Basic realm=\"\(realm.filter { $0 != "\0" && $0 != "\u{7F}" })\(control)\""
        try await HostileServer.run(Self.refuse { _ in field }) { server in
          let prompts = Prompts()
          let transport = try Transport.to(server.url, .system, prompts.challenges())
          let error = await failure { try await transport.get() }
          #expect(error?.code == .unauthenticated || error?.code == .invalidAnswer)
          if control.isEmpty {
            #expect(prompts.all.count == 3)
          } else {
            #expect(prompts.all.isEmpty)
          }
          for request in prompts.all {
            #expect(request.description.hasPrefix("\(server.url) \""))
            let hidden = request.description.unicodeScalars.filter {
              [.control, .format, .lineSeparator, .paragraphSeparator].contains(
                $0.properties.generalCategory)
            }
            #expect(hidden.isEmpty)
          }
          #expect(error.map { "\($0)".unicodeScalars.allSatisfy { $0.value < 0x80 } } == true)
        }
      }
    }

    @Test(
      arguments: [
        "", ",,,,", "=", "\"", "Basic", "Basic realm", "Basic realm=", "Basic realm=\"", "Digest",
        "Basic realm=\"a\", realm=\"b\"", "Negotiate !!", "Bearer x y z",
        String(repeating: "Basic realm=\"r\", ", count: 3000),
        String(repeating: "a", count: 60_000),
      ])
    func `a challenge that is none ends in an error`(field: String) async throws {
      try await HostileServer.run(Self.refuse { _ in field }) { server in
        let prompts = Prompts()
        let transport = try Transport.to(server.url, .system, prompts.challenges())
        let error = await failure { try await transport.get() }
        #expect(error?.code == .unauthenticated)
        #expect(prompts.all.count <= 3)
      }
    }

    @Test func `a path that is no location is named as the cause`() async throws {
      try await HostileServer.run(Self.refuse { _ in "Basic realm=\"r\"" }) { server in
        let transport = try Transport.to(server.url, .system, Prompts().challenges())
        let error = await failure { try await transport.get("/a%0Ab") }
        #expect(error?.code == .unauthenticated && error?.message.contains("path") == true)
      }
    }
  }
}
