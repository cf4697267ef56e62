@testable import MessagingClient
import TestSupport
import Testing
import VaultCrypto

/// The limits of a guard, without connections.
@Suite struct ChallengeGuardTests {
  private let clock = ManualClock()
  private let origin: Origin
  private let space: ProtectionSpace

  init() throws {
    origin = try Origin("https://h")
    space = ProtectionSpace(origin, realm: "r")
  }

  private func makeGuard(_ change: (inout ChallengeGuard.Limits) -> Void = { _ in })
    -> ChallengeGuard
  {
    var limits = ChallengeGuard.Limits()
    change(&limits)
    return ChallengeGuard(limits, clock: clock)
  }

  private func code(_ body: () throws -> Void) -> AuthenticationError.Code? {
    do {
      try body()
      return nil
    } catch let error as AuthenticationError {
      return error.code
    } catch {
      return .libraryFailure
    }
  }

  /// Sends a password, and lets the server give a result; nil if it was sent.
  @discardableResult
  private func send(
    _ guarded: ChallengeGuard, _ text: String, _ result: SentAnswer.Result?,
    to space: ProtectionSpace? = nil
  ) -> AuthenticationError.Code? {
    code {
      try guarded.admit(space ?? self.space)
      let answer = try guarded.send(
        secret("Basic \(text)"), to: space ?? self.space, isRepeatable: true)
      if let result { guarded.settle(answer, result) }
    }
  }

  @Test func `after three refusals nothing is sent until a pause has passed`() {
    let guarded = makeGuard()
    for text in ["a", "b", "c"] { #expect(send(guarded, text, .refused) == nil) }
    #expect(guarded.refusalCount(at: origin, realm: "r") == 3)
    #expect(send(guarded, "d", .accepted) == .tooManyAttempts)
    clock.advance(.seconds(899))
    let error = #expect(throws: AuthenticationError.self) { try guarded.admit(space) }
    #expect(error?.retryAfter == .seconds(1))
    clock.advance(.seconds(1))
    #expect(guarded.refusalCount(at: origin, realm: "r") == 0)
    for text in ["d", "e", "f"] { #expect(send(guarded, text, .refused) == nil) }
    #expect(send(guarded, "g", nil) == .tooManyAttempts)
    guarded.reset()
    #expect(send(guarded, "g", .accepted) == nil)
  }

  @Test func `refused credentials are not sent again, by no scheme and after no pause`() throws {
    let guarded = makeGuard()
    send(guarded, "a", .refused)
    #expect(send(guarded, "a", nil) == .refused)
    #expect(
      code { _ = try guarded.send(secret("Application Basic a"), to: space, isRepeatable: true) }
        == .refused)
    clock.advance(.seconds(100_000))
    #expect(send(guarded, "a", nil) == .refused)
    // Another password was right: the wrong one stays wrong.
    #expect(send(guarded, "b", .accepted) == nil)
    #expect(send(guarded, "a", nil) == .refused)
    #expect(send(guarded, "b", .accepted) == nil)
    // In another realm, and at another origin, it was not refused.
    #expect(send(guarded, "a", .accepted, to: ProtectionSpace(origin, realm: "R")) == nil)
    #expect(
      send(guarded, "a", .accepted, to: ProtectionSpace(try Origin("https://i"), realm: "r")) == nil
    )
    guarded.reset(try Origin("https://i"))
    #expect(send(guarded, "a", nil) == .refused)
    guarded.reset(origin)
    #expect(send(guarded, "a", .accepted) == nil)
  }

  @Test func `realms count apart, byte by byte`() {
    let guarded = makeGuard { $0.refusalLimit = 1 }
    for realm in ["r", "R", "", nil, "é", "e\u{301}"] {
      let space = ProtectionSpace(origin, realm: realm)
      #expect(send(guarded, "a", .refused, to: space) == nil)
      #expect(send(guarded, "b", nil, to: space) == .tooManyAttempts)
    }
  }

  @Test func `an accepted answer ends the count`() {
    let guarded = makeGuard()
    for round in 0..<10 {
      send(guarded, "x\(round)", .refused)
      send(guarded, "y\(round)", .refused)
      #expect(send(guarded, "right", .accepted) == nil)
    }
    #expect(guarded.refusalCount(at: origin, realm: "r") == 0)
  }

  @Test
  func
    `the same password of several connections counts once, and others count while they are on their way`()
    throws
  {
    let guarded = makeGuard()
    let answers = try (0..<5).map { _ in
      try guarded.send(secret("Basic a"), to: space, isRepeatable: true)
    }
    for answer in answers { guarded.settle(answer, .refused) }
    #expect(guarded.refusalCount(at: origin, realm: "r") == 1)
    #expect(send(guarded, "b", nil) == nil)
    #expect(send(guarded, "c", nil) == nil)
    #expect(send(guarded, "c", nil) == nil)
    #expect(send(guarded, "d", nil) == .tooManyAttempts)
  }

  @Test func `a server that sends another realm each time has a limit too`() {
    let guarded = makeGuard()
    for number in 0..<ChallengeGuard.maximumRealmCount {
      #expect(send(guarded, "a", .refused, to: ProtectionSpace(origin, realm: "\(number)")) == nil)
    }
    #expect(send(guarded, "a", nil, to: ProtectionSpace(origin, realm: "new")) == .tooManyAttempts)
    #expect(send(guarded, "b", .refused, to: ProtectionSpace(origin, realm: "3")) == nil)
    clock.advance(.seconds(900))
    #expect(send(guarded, "a", .refused, to: ProtectionSpace(origin, realm: "new")) == nil)
  }

  @Test func `the memory of a guard is bounded`() {
    var ledger = RefusalLedger()
    let limits = ChallengeGuard.Limits()
    var now = Duration.zero
    for number in 0..<1000 {
      let space = ProtectionSpace(origin, realm: "\(number)")
      now += limits.pause
      for byte in 0..<UInt8(100) {
        now += limits.pause
        let answer = SentAnswer(space: space, tag: [UInt8(number & 255), byte])
        #expect(ledger.send(answer, limits, at: now) == nil)
        ledger.settle(answer, .refused, limits, at: now)
        if number > 100 { break }
      }
    }
    #expect(ledger.recordCount == RefusalLedger.maximumRecordCount)
    #expect(ledger.tagCount <= RefusalLedger.maximumRecordCount * RefusalLedger.maximumTagCount)
  }

  @Test func `a server that closes instead of refusing has a limit`() {
    let guarded = makeGuard { $0.unansweredLimit = 4 }
    for _ in 0..<4 { #expect(send(guarded, "a", .unanswered) == nil) }
    #expect(send(guarded, "a", nil) == .tooManyAttempts)
    clock.advance(.seconds(900))
    #expect(send(guarded, "a", .accepted) == nil)
    for _ in 0..<20 { #expect(send(guarded, "a", .left) == nil) }
  }

  @Test func `a limit below one is one`() {
    let guarded = makeGuard { ($0.refusalLimit, $0.unansweredLimit) = (0, -1) }
    #expect(send(guarded, "a", .refused) == nil)
    #expect(send(guarded, "b", nil) == .tooManyAttempts)
  }

  @Test
  func `credentials go to the origin of the connection alone, and to those that were allowed`()
    throws
  {
    let guarded = makeGuard()
    let other = try Origin("https://other")
    #expect(code { try guarded.permit(origin, forConnectionsTo: origin) } == nil)
    for foreign in [
      other, try Origin("https://h:8443"), try Origin("http://h:443"), try Origin("https://a.h"),
    ] {
      #expect(code { try guarded.permit(foreign, forConnectionsTo: origin) } == .foreignOrigin)
    }
    guarded.allow(other, forConnectionsTo: origin)
    #expect(code { try guarded.permit(other, forConnectionsTo: origin) } == nil)
    #expect(code { try guarded.permit(origin, forConnectionsTo: other) } == .foreignOrigin)
    let plain = try Origin("http://plain")
    guarded.allow(plain, forConnectionsTo: origin)
    #expect(code { try guarded.permit(plain, forConnectionsTo: origin) } == .notProtected)
  }

  @Test
  func `plain HTTP carries credentials to this machine alone, unless the option says otherwise`()
    throws
  {
    let open = makeGuard { $0.sendsCredentialsOverPlainHTTPBeyondLoopback = true }
    for text in [
      "ws://127.0.0.1:8080", "http://[::1]", "http://localhost", "https://far", "wss://far",
    ] {
      let origin = try Origin(text)
      #expect(code { try makeGuard().permit(origin, forConnectionsTo: origin) } == nil)
    }
    for text in ["ws://far", "http://10.0.0.1", "http://localhost.example"] {
      let origin = try Origin(text)
      #expect(code { try makeGuard().permit(origin, forConnectionsTo: origin) } == .notProtected)
      #expect(code { try open.permit(origin, forConnectionsTo: origin) } == nil)
    }
  }
}
