@testable import MessagingClient
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// The rounds of `Negotiate`.
@Suite struct NegotiateTests {
  /// A context whose token is the number of the round and what the server sent; the server's proof is 42.
  struct Rounds: NegotiateContext {
    struct Unproved: Error {}
    var round: UInt8 = 0

    mutating func next(serverToken: [UInt8]?) async throws -> [UInt8] {
      round += 1
      return [round] + (serverToken ?? [])
    }

    mutating func finish(serverToken: [UInt8]?) async throws {
      if serverToken != [42] { throw Unproved() }
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

  // MARK: The server's proof

  private func authenticator(_ guarded: ChallengeGuard) async throws -> Authenticator {
    let location = try Location("https://h")
    let authenticator = Authenticator(
      connectionTo: location.origin, handler: NegotiateChallengeHandler { _ in Rounds() },
      challengeGuard: guarded)
    _ = try await authenticator.answer(["Negotiate"], at: location)
    return authenticator
  }

  @Test(arguments: [
    ["Negotiate Kg=="], ["negotiate Kg=="], [#"Basic realm="a""#, "Negotiate Kg=="],
    [#"Basic realm="a", Negotiate Kg=="#],
  ])
  func `a success with the server's proof opens the connection`(fields: [String]) async throws {
    let guarded = ChallengeGuard(clock: ManualClock())
    let authenticator = try await authenticator(guarded)
    try await authenticator.opened(fields)
    // A later success of the same connection needs no proof.
    try await authenticator.opened([])
  }

  @Test(arguments: [
    [], ["Negotiate"], ["Negotiate Kw=="], ["Negotiate Kg="], ["Application Negotiate Kg=="],
    ["Negotiate\u{0} Kg=="], ["Negotiate", "Negotiate Kg=="],
  ])
  func `a success without the server's proof is an error, and no success`(fields: [String])
    async throws
  {
    let guarded = ChallengeGuard(clock: ManualClock())
    for _ in 1...10 {
      let authenticator = try await authenticator(guarded)
      let error = await #expect(throws: AuthenticationError.self) {
        try await authenticator.opened(fields)
      }
      #expect(error?.code == .serverNotAuthenticated)
      #expect(error?.underlying is Rounds.Unproved)
    }
    // Each counts as an answer without a result.
    let error = await #expect(throws: AuthenticationError.self) {
      _ = try await authenticator(guarded)
    }
    #expect(error?.code == .tooManyAttempts)
  }

  @Test func `a connection that ends while its proof is checked does not open`() async throws {
    /// A context whose check ends the connection.
    struct Ending: NegotiateContext {
      let end: @Sendable () async -> Void
      mutating func next(serverToken: [UInt8]?) async throws -> [UInt8] { [1] }
      mutating func finish(serverToken: [UInt8]?) async throws { await end() }
    }
    let location = try Location("https://h")
    let box = Mutex<Authenticator?>(nil)
    let handler = NegotiateChallengeHandler { _ in
      Ending { await box.withLock { $0 }?.closed() }
    }
    let authenticator = Authenticator(
      connectionTo: location.origin, handler: handler,
      challengeGuard: ChallengeGuard(clock: ManualClock()))
    box.withLock { $0 = authenticator }
    _ = try await authenticator.answer(["Negotiate"], at: location)
    let error = await #expect(throws: AuthenticationError.self) {
      try await authenticator.opened(["Negotiate Kg=="])
    }
    #expect(error?.code == .cancelled)
    // The connection can begin again.
    _ = try await authenticator.answer(["Negotiate"], at: location)
  }

  private static func base64(_ bytes: [UInt8]) -> String {
    String(AuthorizationValue.base64(.basic, bytes.span.bytes).text().dropFirst(6))
  }
}
