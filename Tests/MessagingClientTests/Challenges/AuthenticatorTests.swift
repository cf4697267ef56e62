@testable import MessagingClient
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// The authentication of a connection, from a 401 to the next.
@Suite struct AuthenticatorTests {
  static let basic = [#"Basic realm="r""#]
  private let clock = ManualClock()

  /// A connection's authentication, with what its login handler was asked and the passwords that it gives.
  private final class Fixture: Sendable {
    let authenticator: Authenticator
    let asked = SharedList()
    let location: Location

    init(
      _ challengeGuard: ChallengeGuard, passwords: [String?], at url: String = "wss://h/app",
      handler: (any ChallengeHandler)? = nil
    ) throws {
      location = try Location(url)
      let login = ClosureLoginHandler { [asked] request in
        let index = asked.append(request)
        guard let password = passwords[min(index, passwords.count - 1)] else { return nil }
        return LoginCredentials(user: secret("u"), password: secret(password))
      }
      authenticator = Authenticator(
        connectionTo: location.origin,
        handler: handler ?? BasicChallengeHandler(login, answersApplicationBasic: true),
        challengeGuard: challengeGuard)
    }

    /// The value that answers a 401, or the code of the error.
    func answer(_ fields: [String] = basic, at url: String? = nil) async throws -> String {
      let location = try url.map { try Location($0) } ?? location
      do throws(AuthenticationError) {
        let answer = try await authenticator.answer(fields, at: location)
        return answer.authorization.text()
      } catch {
        return "\(error.code)"
      }
    }
  }

  private func makeGuard() -> ChallengeGuard { ChallengeGuard(clock: clock) }

  @Test func `a right password opens the connection`() async throws {
    let guarded = makeGuard()
    let fixture = try Fixture(guarded, passwords: ["p"])
    for _ in 0..<20 {
      #expect(try await fixture.answer() == "Basic dTpw")
      try await fixture.authenticator.opened([])
      await fixture.authenticator.closed()
    }
    #expect(guarded.refusalCount(at: fixture.location.origin, realm: "r") == 0)
  }

  @Test
  func
    `the handler is told of refusals, and its count begins again when the connection opens or closes`()
    async throws
  {
    let fixture = try Fixture(makeGuard(), passwords: ["a", "b", "right", "c", "right"])
    for _ in 0..<3 { _ = try await fixture.answer() }
    try await fixture.authenticator.opened([])
    _ = try await fixture.answer()
    await fixture.authenticator.refused()
    await fixture.authenticator.closed()
    _ = try await fixture.answer()
    #expect(fixture.asked.requests.withLock { $0.map(\.refusalCount) } == [0, 1, 2, 0, 0])
  }

  @Test func `a wrong password does not loop over reconnections`() async throws {
    let guarded = makeGuard()
    var answers: [String] = []
    for number in 0..<6 {
      // Each reconnection has an authentication of its own, and its login handler tries two passwords.
      let fixture = try Fixture(guarded, passwords: ["x\(number)", "y\(number)"])
      for _ in 0..<3 { answers.append(try await fixture.answer()) }
      await fixture.authenticator.closed()
    }
    #expect(answers.filter { $0.hasPrefix("Basic") }.count == 3)
    #expect(answers.last == "tooManyAttempts")
    clock.advance(.seconds(900))
    let fixture = try Fixture(guarded, passwords: ["z"])
    #expect(try await fixture.answer().hasPrefix("Basic"))
  }

  @Test
  func `the same password is not sent again, by a 401 or a 403, in this connection or the next`()
    async throws
  {
    let guarded = makeGuard()
    let first = try Fixture(guarded, passwords: ["p"])
    #expect(try await first.answer() == "Basic dTpw")
    #expect(try await first.answer(["Application Basic realm=r"]) == "refused")
    let second = try Fixture(guarded, passwords: ["p", "q"])
    #expect(try await second.answer() == "refused")
    #expect(try await second.answer() == "Basic dTpx")
    await second.authenticator.refused()
    await second.authenticator.closed()
    let third = try Fixture(guarded, passwords: ["q"])
    #expect(try await third.answer() == "refused")
    #expect(guarded.refusalCount(at: first.location.origin, realm: "r") == 2)
  }

  @Test func `nil ends the authentication until the connection closes`() async throws {
    let fixture = try Fixture(makeGuard(), passwords: [nil, "p"])
    #expect(try await fixture.answer() == "cancelled")
    #expect(try await fixture.answer() == "cancelled")
    #expect(fixture.asked.requests.withLock { $0.count } == 1)
    await fixture.authenticator.closed()
    #expect(try await fixture.answer() == "Basic dTpw")
  }

  @Test(arguments: [
    (
      ["Basic realm=r", "Application Token", "Application Negotiate", "Negotiate"], "Negotiate AQ=="
    ),
    (
      ["Application Basic realm=r, Basic realm=r, Application Token, Application Negotiate"],
      "Application Negotiate AQ=="
    ),
    (["Basic realm=r, Digest realm=d", "Application Token"], "Application Token t"),
    (["Application Basic realm=r, Basic realm=r"], "Basic dTpw"),
    (["Application Basic realm=r"], "Application Basic dTpw"),
    (["Digest realm=d, Basic realm=r"], "Basic dTpw"),
    (["Negotiate AQ==, Basic realm=r"], "Basic dTpw"),
    (["Digest realm=d, Bearer"], "noHandler"), ([], "malformedChallenge"),
    ([""], "malformedChallenge"),
    (["Basic realm=\"r"], "malformedChallenge"), (["Basic realm=r\r\nX: y"], "malformedChallenge"),
    (["Basic realm=r", "Negotiate\u{0}"], "Basic dTpw"),
  ])
  func `the strongest challenge that a handler answers is chosen`(
    fields: [String], expected: String
  ) async throws {
    let dispatch = DispatchChallengeHandler()
    try dispatch.register(
      BasicChallengeHandler(
        ClosureLoginHandler { _ in LoginCredentials(user: secret("u"), password: secret("p")) },
        answersApplicationBasic: true), at: "h:443/*")
    try dispatch.register(TokenChallengeHandler { _ in secret("t") }, at: "*:443/*")
    try dispatch.register(NegotiateChallengeHandler { _ in NegotiateTests.Rounds() }, at: "*:*/*")
    let fixture = try Fixture(makeGuard(), passwords: [nil], handler: dispatch)
    #expect(try await fixture.answer(fields) == expected)
  }

  @Test func `no handler is asked for a foreign origin or over plain HTTP`() async throws {
    let guarded = makeGuard()
    let fixture = try Fixture(guarded, passwords: ["p"])
    #expect(try await fixture.answer(at: "wss://other/app") == "foreignOrigin")
    #expect(try await fixture.answer(at: "ws://h:443/app") == "foreignOrigin")
    let plain = try Fixture(guarded, passwords: ["p"], at: "ws://far/app")
    #expect(try await plain.answer() == "notProtected")
    #expect(
      fixture.asked.requests.withLock { $0.isEmpty } && plain.asked.requests.withLock { $0.isEmpty }
    )
    guarded.allow(try Origin("wss://other"), forConnectionsTo: fixture.location.origin)
    #expect(try await fixture.answer(at: "wss://other/app") == "Basic dTpw")
    // The redirect was no refusal: the first server has accepted the password, or did not look at it.
    #expect(try await fixture.answer() == "Basic dTpw")
    #expect(guarded.refusalCount(at: try Origin("wss://other"), realm: "r") == 0)
    #expect(
      try await Fixture(guarded, passwords: ["p"], at: "ws://127.0.0.1:8080/app").answer()
        == "Basic dTpw")
  }

  @Test func `Negotiate goes on for some rounds, which are no refusals`() async throws {
    let guarded = makeGuard()
    let handler = NegotiateChallengeHandler { _ in NegotiateTests.Rounds() }
    let fixture = try Fixture(guarded, passwords: [nil], handler: handler)
    let origin = fixture.location.origin
    #expect(try await fixture.answer(["Negotiate"]) == "Negotiate AQ==")
    for _ in 1..<Authenticator.maximumRoundCount {
      #expect(
        try await fixture.answer(["Basic realm=r", "Negotiate AQ=="]).hasPrefix("Negotiate "))
      #expect(guarded.refusalCount(at: origin, realm: nil) == 0)
    }
    #expect(try await fixture.answer(["Negotiate AQ=="]) == "noHandler")
    #expect(guarded.refusalCount(at: origin, realm: nil) == 1)
    // A challenge without data is a refusal, and begins again.
    #expect(try await fixture.answer(["Negotiate"]) == "Negotiate AQ==")
    #expect(try await fixture.answer(["Negotiate"]) == "Negotiate AQ==")
    #expect(try await fixture.answer(["Negotiate"]) == "tooManyAttempts")
    #expect(guarded.refusalCount(at: origin, realm: nil) == 3)
  }

  @Test func `an answer says whether it needs the same connection`() async throws {
    let negotiate = try Fixture(
      makeGuard(), passwords: [nil],
      handler: NegotiateChallengeHandler { _ in NegotiateTests.Rounds() })
    let needs = try await negotiate.authenticator.answer(
      ["Application Negotiate"], at: negotiate.location
    )
    .needsSameConnection
    #expect(needs)
    let basic = try Fixture(makeGuard(), passwords: ["p"])
    let does = try await basic.authenticator.answer(Self.basic, at: basic.location)
      .needsSameConnection
    #expect(!does)
  }

  /// A handler that gives a text, or throws.
  private struct Custom: ChallengeHandler {
    struct Failure: Error {
      let password = "s3cret"
    }
    var text: String?
    var next: (any ChallengeHandler)?
    func canHandle(_ request: ChallengeRequest) -> Bool { true }
    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
      guard let text else { throw Failure() }
      return ChallengeResponse(authorization: secret(text), nextHandler: next)
    }
  }

  @Test func `the error of a handler is beneath, and not shown`() async throws {
    let fixture = try Fixture(makeGuard(), passwords: [nil], handler: Custom())
    do throws(AuthenticationError) {
      _ = try await fixture.authenticator.answer(Self.basic, at: fixture.location)
      Issue.record("no error")
    } catch {
      #expect(error.code == .handlerFailed)
      #expect(error.underlying is Custom.Failure)
      #expect(!"\(error)".contains("s3cret"))
    }
  }

  @Test(arguments: [
    "Basic a\r\nX: y", "Basic a\n", "Basic \u{0}", "Basic ü", " a", "a ", "a  b", "", "a\tb",
  ])
  func `an answer that is no field is refused`(text: String) async throws {
    let fixture = try Fixture(makeGuard(), passwords: [nil], handler: Custom(text: text))
    #expect(try await fixture.answer() == "invalidCredentials")
  }

  @Test func `the next handler is asked first, at the same origin alone, and its 401 is a refusal`()
    async throws
  {
    let guarded = makeGuard()
    let handler = Custom(text: "Test one", next: Custom(text: "Test two"))
    let fixture = try Fixture(guarded, passwords: [nil], handler: handler)
    let other = try Origin("wss://other")
    guarded.allow(other, forConnectionsTo: fixture.location.origin)
    #expect(try await fixture.answer() == "Test one")
    #expect(try await fixture.answer() == "Test two")
    #expect(guarded.refusalCount(at: fixture.location.origin, realm: "r") == 1)
    let redirected = try Fixture(
      guarded, passwords: [nil], at: "wss://h/b", handler: Custom(text: "Test 1", next: handler))
    #expect(try await redirected.answer() == "Test 1")
    #expect(try await redirected.answer(at: "wss://other/") == "Test 1")
  }

  @Test func `a hostile challenge shows escaped in the error`() async throws {
    let fixture = try Fixture(makeGuard(), passwords: [nil], handler: DispatchChallengeHandler())
    let location = try Location("wss://u:s3cret@h/app?t=1")
    do throws(AuthenticationError) {
      _ = try await fixture.authenticator.answer([#"Foo realm="secret text""#], at: location)
      Issue.record("no error")
    } catch {
      #expect(error.code == .noHandler)
      #expect("\(error)".contains("Foo") && "\(error)".contains("https://u@h/app"))
      #expect(!"\(error)".contains("secret text") && !"\(error)".contains("s3cret"))
    }
  }
}

/// What a login handler was asked.
final class SharedList: Sendable {
  let requests: Mutex<[LoginRequest]> = Mutex([])

  func append(_ request: LoginRequest) -> Int {
    requests.withLock {
      $0.append(request)
      return $0.count - 1
    }
  }
}
