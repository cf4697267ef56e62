import Foundation
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingClient

/// Kaazing's case: a gateway that challenges the handshake of a WebSocket before it speaks STOMP.
@Suite(.timeLimit(.minutes(10))) struct STOMPWebSocketTests {
  private static let credentials = "Basic \(Data("anna:pw".utf8).base64EncodedString())\r\n"

  /// Refuses each handshake without the password, and the first frame behind one with it.
  private static func gateway(_ challenge: String) -> @Sendable (HostileServer.Peer) -> Void {
    { peer in
      while let head = peer.head() {
        guard head.contains(credentials) else {
          peer.send(answer("401 Unauthorized", ["WWW-Authenticate: \(challenge)"]))
          continue
        }
        guard
          let handshake = try? HostileWebSocket.handshake(
            head, ["Sec-WebSocket-Protocol": "v12.stomp"])
        else { return }
        peer.send(handshake)
        guard !peer.read(1).isEmpty else { return }
        peer.send(HostileWebSocket.text("ERROR\nmessage:this is STOMP\n\n\0"))
        return peer.wait()
      }
    }
  }

  @Test(arguments: ["Basic realm=\"jms\"", "Application Basic realm=\"jms\""])
  func `a challenge to the handshake is answered once, and STOMP follows`(
    challenge: String
  ) async throws {
    try await HostileServer.run(Self.gateway(challenge)) { server in
      var configuration = STOMPConfiguration(server: server.url, application: "jms")
      configuration.challenges = ClientChallenges(
        BasicChallengeHandler(
          ClosureLoginHandler { request in
            #expect(request.realm == "jms")
            return LoginCredentials(user: secret("anna"), password: secret("pw"))
          }, answersApplicationBasic: true), guard: ChallengeGuard())
      let client = try STOMPClient(configuration)
      let error = await failure { _ = try await client.subscribe(to: "/topic/a") }
      #expect(error?.description.contains("this is STOMP") == true)
      #expect(server.text.ranges(of: "GET /stomp/jms HTTP/1.1\r\n").count == 2)
      #expect(server.text.ranges(of: Self.credentials).count == 1)
      await client.close()
    }
  }

  @Test func `without a handler, the challenge is the reason of the error`() async throws {
    try await HostileServer.run(Self.gateway("Application Basic realm=\"jms\"")) { server in
      let client = try STOMPClient(STOMPConfiguration(server: server.url, application: "jms"))
      let error = await failure { _ = try await client.subscribe(to: "/topic/a") }
      #expect(error?.code == .unauthenticated && error?.status == 401)
      await client.close()
    }
  }
}
