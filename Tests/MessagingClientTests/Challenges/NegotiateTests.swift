@testable import MessagingClient
import TestSupport
import Testing
import VaultCrypto

/// The rounds of `Negotiate`.
@Suite struct NegotiateTests {
  /// A context whose token is the number of the round and what the server sent.
  struct Rounds: NegotiateContext {
    var round: UInt8 = 0

    mutating func next(serverToken: [UInt8]?) async throws -> [UInt8] {
      round += 1
      return [round] + (serverToken ?? [])
    }
  }

  private func request(_ field: String, at location: String = "https://h") throws
    -> ChallengeRequest
  {
    let challenge = try #require(ChallengeList([field]).challenges.first)
    return ChallengeRequest(location: try Location(location), challenge: challenge)
  }

  @Test(arguments: ["Negotiate", "Application Negotiate"])
  func `one context makes the tokens of all rounds`(scheme: String) async throws {
    let handler = NegotiateChallengeHandler { _ in Rounds() }
    guard let first = try await handler.handle(request(scheme)), let second = first.nextHandler
    else {
      Issue.record("no answer")
      return
    }
    #expect(first.authorization.text() == "\(scheme) AQ==")
    let round = try request("\(scheme) \(Self.base64([9, 8]))")
    #expect(second.canHandle(round))
    guard let answer = try await second.handle(round) else {
      Issue.record("no second answer")
      return
    }
    #expect(answer.authorization.text() == "\(scheme) \(Self.base64([2, 9, 8]))")
    // The context has gone on.
    #expect(!second.canHandle(round))
    guard try await second.handle(round) == nil else {
      Issue.record("a round was answered twice")
      return
    }
    #expect(answer.nextHandler?.canHandle(round) == true)
  }

  @Test func `a round answers its own scheme and origin alone`() async throws {
    let handler = NegotiateChallengeHandler { _ in Rounds() }
    let next = try #require(try await handler.handle(request("Negotiate"))?.nextHandler)
    #expect(try next.canHandle(request("Negotiate AQ==", at: "wss://H:443/other")))
    for (field, location) in [
      ("Negotiate AQ==", "https://other"), ("Negotiate AQ==", "http://h"),
      ("Application Negotiate AQ==", "https://h"),
      ("Negotiate", "https://h"), ("Negotiate AQ=", "https://h"), ("Negotiate a-_b", "https://h"),
      ("Basic realm=a", "https://h"),
    ] {
      #expect(try !next.canHandle(request(field, at: location)), "\(field)")
      guard try await next.handle(request(field, at: location)) == nil else {
        Issue.record("\(field) was answered")
        continue
      }
    }
  }

  @Test func `an authentication begins without data, with a context for the origin`() async throws {
    let handler = NegotiateChallengeHandler(schemes: [.negotiate]) { origin in
      "\(origin)" == "https://h" ? Rounds() : nil
    }
    #expect(try handler.canHandle(request("negotiate")))
    #expect(try !handler.canHandle(request("Negotiate AQ==")))
    #expect(try !handler.canHandle(request("Application Negotiate")))
    guard try await handler.handle(request("Negotiate", at: "https://other")) == nil else {
      Issue.record("an origin without a context was answered")
      return
    }
  }

  private static func base64(_ bytes: [UInt8]) -> String {
    String(AuthorizationValue.base64(.basic, bytes.span.bytes).text().dropFirst(6))
  }
}
