@testable import MessagingClient
import Synchronization
import TestSupport
import Testing
import VaultCrypto

/// The handlers of the library, and what they give to login handlers.
@Suite struct LoginTests {
  private func request(
    _ field: String, at location: String = "https://h", refusals: Int = 0
  ) throws -> ChallengeRequest {
    let challenge = try #require(ChallengeList([field]).challenges.first)
    return ChallengeRequest(
      location: try Location(location), challenge: challenge, refusalCount: refusals)
  }

  private func login(_ user: String, _ password: String) -> ClosureLoginHandler {
    ClosureLoginHandler { _ in LoginCredentials(user: secret(user), password: secret(password)) }
  }

  /// The value that a handler answers; nil for none.
  private func answer(_ handler: some ChallengeHandler, _ request: ChallengeRequest) async throws
    -> String?
  {
    guard let response = try await handler.handle(request) else { return nil }
    #expect(response.nextHandler == nil)
    return response.authorization.text()
  }

  @Test(arguments: [
    ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
    ("test", "123£", "dGVzdDoxMjPCow=="),
    ("", "", "Og=="), ("u", "", "dTo="), ("", "p", "OnA="), ("u", "p:q", "dTpwOnE="),
    ("ü", "東", "w7w65p2x"),
    ("u", "???>>>", "dTo/Pz8+Pj4="), ("a", "~\u{80}", "YTp+woA="),
  ])
  func `Basic is base64 of user and password in UTF-8`(user: String, password: String, text: String)
    async throws
  {
    let handler = BasicChallengeHandler(login(user, password))
    #expect(try await answer(handler, request(#"basic realm="a", charset="x""#)) == "Basic \(text)")
  }

  @Test func `base64 has every digit at every place`() throws {
    var random = SeededRandom(seed: 3)
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    for count in 0..<300 {
      let bytes = (0..<count).map { _ in UInt8(random.next(256)) }
      let text = AuthorizationValue.base64(.basic, bytes.span.bytes).text().dropFirst(6)
      // Slow and obvious: bit by bit.
      let bits = bytes.flatMap { byte in (0..<8).map { Int(byte >> (7 - $0) & 1) } }
      let padded = bits + [Int](repeating: 0, count: (6 - bits.count % 6) % 6)
      var expected = stride(from: 0, to: padded.count, by: 6).map { start in
        digits[padded[start..<start + 6].reduce(0) { $0 * 2 + $1 }]
      }
      while expected.count % 4 != 0 { expected.append("=") }
      #expect(text == String(expected))
      #expect(AuthorizationValue.decodeBase64(String(text)) == bytes)
    }
    for text in [
      "A", "AA", "AAA", "AA=A", "A===", "====", "AB==", "AAB=", "AA==AA==", "AA-_", "AA A", "AAA\n",
    ] {
      #expect(AuthorizationValue.decodeBase64(text) == nil, "\(text)")
    }
  }

  @Test func `an answer names the scheme that was asked for`() async throws {
    let both = BasicChallengeHandler(login("u", "p"), answersApplicationBasic: true)
    #expect(try await answer(both, request("Basic realm=a")) == "Basic dTpw")
    #expect(
      try await answer(both, request("application BASIC realm=a")) == "Application Basic dTpw")
    let basic = BasicChallengeHandler(login("u", "p"))
    #expect(try await answer(basic, request("Application Basic realm=a")) == nil)
    let application = BasicChallengeHandler(
      login("u", "p"), answersApplicationBasic: true, answersBasic: false)
    #expect(try await answer(application, request("Basic realm=a")) == nil)
    for field in ["Digest realm=a", "Negotiate", "Application Token"] {
      #expect(try !both.canHandle(request(field)))
      #expect(try await answer(both, request(field)) == nil)
    }
  }

  @Test func `the login handler of the realm wins, and case counts in realms`() async throws {
    var handler = BasicChallengeHandler(login("general", ""))
    handler.setLoginHandler(login("special", ""), forRealm: "A\"b")
    func user(_ field: String) async throws -> String? {
      try await answer(handler, request(field)).flatMap {
        AuthorizationValue.decodeBase64(String($0.dropFirst(6))).map {
          String(decoding: $0, as: UTF8.self)
        }
      }
    }
    #expect(try await user(#"Basic realm="A\"b""#) == "special:")
    #expect(try await user(#"Basic realm="a\"b""#) == "general:")
    #expect(try await user("Basic") == "general:")
    handler.setLoginHandler(nil, forRealm: "A\"b")
    #expect(try await user(#"Basic realm="A\"b""#) == "general:")
    var special = BasicChallengeHandler(nil)
    #expect(try !special.canHandle(request("Basic realm=a")))
    special.setLoginHandler(login("u", "p"), forRealm: "é")
    #expect(try special.canHandle(request(#"Basic realm="é""#)))
    #expect(try !special.canHandle(request("Basic realm=\"e\u{301}\"")))
    #expect(try !special.canHandle(request("Basic")))
  }

  @Test(arguments: [
    ("a:b", "p"), ("a\r", "p"), ("a\nb", "p"), ("a\u{0}", "p"), ("a\u{7F}", "p"), ("a\tb", "p"),
    ("a", "p\r\nX: y"),
    ("a", "p\u{0}"), ("a", "\u{1F}"),
    ("a", String(repeating: "p", count: BasicChallengeHandler.maximumByteCount)),
  ])
  func `credentials that Basic cannot carry are refused`(user: String, password: String)
    async throws
  {
    let handler = BasicChallengeHandler(login(user, password))
    let error = await #expect(throws: AuthenticationError.self) {
      try await answer(handler, request("Basic realm=a"))
    }
    #expect(error?.code == .invalidCredentials)
    #expect(error.map { !"\($0)".contains(password) || password == "p" } == true)
  }

  @Test func `credentials that are not UTF-8 are refused`() async throws {
    for (user, password) in [([0xFF], [0x70]), ([0x75], [0xC3]), ([0x75], [0xED, 0xA0, 0x80])]
      as [([UInt8], [UInt8])]
    {
      let handler = BasicChallengeHandler(
        ClosureLoginHandler { _ in
          LoginCredentials(
            user: SecretBytes(copying: user), password: SecretBytes(copying: password))
        })
      await #expect(throws: AuthenticationError.self) {
        try await answer(handler, request("Basic realm=a"))
      }
    }
  }

  @Test func `nil credentials are no answer`() async throws {
    #expect(
      try await answer(BasicChallengeHandler(ClosureLoginHandler { _ in nil }), request("Basic"))
        == nil)
    #expect(
      try await answer(TokenChallengeHandler { _ in nil }, request("Application Token")) == nil)
  }

  @Test func `a login request has the origin, the realm and the number of refusals`() async throws {
    let seen = Mutex<[LoginRequest]>([])
    let handler = BasicChallengeHandler(
      ClosureLoginHandler { request in
        seen.withLock { $0.append(request) }
        return nil
      })
    _ = try await answer(
      handler, request(#"Basic realm="a \"b\"""#, at: "wss://u:p@Host:8443/x", refusals: 2))
    let request = try #require(seen.withLock { $0.first })
    #expect("\(request)" == #"https://host:8443 "a \"b\"""#)
    #expect(request.rawRealm == #"a "b""#)
    #expect(request.refusalCount == 2)
    #expect(try "\(LoginRequest(origin: Origin("wss://h"), rawRealm: nil))" == "https://h")
  }

  @Test(arguments: [
    ("plain realm", "plain realm"), ("Zürich 東京 हिन्दी", "Zürich 東京 हिन्दी"), (#"a"b\c"#, #"a\"b\\c"#),
    ("a\r\nb", #"a\u{d}\u{a}b"#), ("a\u{202E}b\u{2066}", #"a\u{202e}b\u{2066}"#),
    ("a\u{200B}\u{FEFF}", #"a\u{200b}\u{feff}"#),
    ("a\u{2028}b\u{2029}\u{85}", #"a\u{2028}b\u{2029}\u{85}"#), ("\u{1B}[2J", #"\u{1b}[2J"#),
    ("a\u{A0}b\u{3000}", #"a\u{a0}b\u{3000}"#),
    ("a\u{301}\u{301}\u{301}\u{301}", "a\u{301}\u{301}\\u{301}\\u{301}"),
    ("\u{E000}\u{E0041}", #"\u{e000}\u{e0041}"#),
    ("\u{3164}\u{115F}\u{AD}", #"\u{3164}\u{115f}\u{ad}"#), ("a\tb\u{0}", #"a\u{9}b\u{0}"#),
    ("", ""),
  ])
  func `a realm is shown in one line without hidden characters`(raw: String, shown: String) throws {
    #expect(try LoginRequest(origin: Origin("https://h"), rawRealm: raw).realm == shown)
  }

  @Test func `a long realm is shown in part`() throws {
    let long = String(repeating: "a", count: 60_000)
    let request = try LoginRequest(origin: Origin("https://h"), rawRealm: long)
    #expect(request.realm == long.prefix(100) + "...")
    #expect(request.rawRealm == long)
  }

  @Test func `Application Token carries a token68`() async throws {
    func handler(_ token: String) -> TokenChallengeHandler {
      TokenChallengeHandler { _ in secret(token) }
    }
    #expect(
      try await answer(handler("qEF2AkF0-_=="), request("application token"))
        == "Application Token qEF2AkF0-_==")
    #expect(try !handler("a").canHandle(request("Token x")))
    #expect(try await answer(handler("a"), request("Basic realm=a")) == nil)
    let long = String(repeating: "a", count: TokenChallengeHandler.maximumByteCount)
    #expect(
      try await answer(handler(long), request("Application Token")) == "Application Token \(long)")
    for token in ["", "=", "a=b", "a b", "a\r\nX: y", "a,", "ü", "a\u{0}", "=a", long + "a"] {
      let error = await #expect(throws: AuthenticationError.self) {
        try await answer(handler(token), request("Application Token"))
      }
      #expect(error?.code == .invalidCredentials)
    }
  }
}
