@testable import MessagingClient
import TestSupport
import Testing
import VaultCrypto

/// Which handler answers at which location.
@Suite struct DispatchTests {
  /// A handler with a name, which it gives as its answer.
  private struct Named: ChallengeHandler {
    let name: String
    var isWilling = true

    func canHandle(_ request: ChallengeRequest) -> Bool { isWilling }
    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
      ChallengeResponse(authorization: secret("Test \(name)"))
    }
  }

  private func request(_ location: String) throws -> ChallengeRequest {
    let challenge = try #require(ChallengeList(["Test realm=\"r\""]).challenges.first)
    return ChallengeRequest(
      location: try Location(location, defaultScheme: .http), challenge: challenge)
  }

  /// The name of the handler that answers; nil if there is none.
  private func answer(_ dispatch: DispatchChallengeHandler, _ location: String) async throws
    -> String?
  {
    let request = try request(location)
    guard let response = try await dispatch.handle(request) else {
      #expect(!dispatch.canHandle(request))
      return nil
    }
    #expect(dispatch.canHandle(request))
    return String(response.authorization.text().dropFirst(5))
  }

  /// The locations of Kaazing's precedence table, with our answer for every order of registration.
  @Test(arguments: [
    ("foo.example.com/a", ["*.example.com/a", "foo.example.com/a"], "foo.example.com/a"),
    ("foo.example.com/a", ["foo.example.com/*", "foo.example.com/a"], "foo.example.com/a"),
    ("foo.example.com/a", ["*/a", "*.example.com/a", "foo.example.com/*"], "foo.example.com/*"),
    ("foo.example.com/a/b/c/d", ["foo.example.com/*", "*/a/b/c/d"], "foo.example.com/*"),
    (
      "foo.example.com:8000/a",
      ["foo.example.com:*/*", "foo.example.com:8000/*", "*:*/*", "foo.example.com:8000/a"],
      "foo.example.com:8000/a"
    ),
    ("foo.example.com:8000/a", ["*:*/*", "*.com:*/*", "*.example.com:*/*"], "*.example.com:*/*"),
    ("u:p@foo.example.com", ["*@foo.example.com", "foo.example.com/*"], "*@foo.example.com"),
    (
      "foo.example.com:8000/a/b", ["foo.example.com:*/a/b", "foo.example.com:8000/*"],
      "foo.example.com:8000/*"
    ),
    ("u:p@h/a/b", ["u:p@h/*", "u:*@h/a/b", "*@h/a/b"], "u:p@h/*"),
    ("h/a/b", ["h/a/b/*", "h/a/b"], "h/a/b"),
    ("h/a/b/c", ["h/a/b/*/*", "h/a/b/*", "h/a/*"], "h/a/b/*"),
  ])
  func `the most specific location wins in every order of registration`(
    location: String, patterns: [String], chosen: String
  ) async throws {
    for order in [
      patterns, patterns.reversed(), patterns.sorted(),
      Array(patterns.dropFirst() + patterns.prefix(1)),
    ] {
      let dispatch = DispatchChallengeHandler()
      for pattern in order { try dispatch.register(Named(name: pattern), at: pattern) }
      #expect(try await answer(dispatch, location) == chosen)
    }
  }

  @Test
  func
    `the first of equal locations wins, and a less specific one stands in for an unwilling handler`()
    async throws
  {
    let dispatch = DispatchChallengeHandler()
    try dispatch.register(Named(name: "any"), at: "*/*")
    try dispatch.register(Named(name: "exact", isWilling: false), at: "foo.example.com/a")
    #expect(try await answer(dispatch, "foo.example.com/a") == "any")
    try dispatch.register(Named(name: "host"), at: "foo.example.com/*")
    #expect(try await answer(dispatch, "foo.example.com/a") == "host")
    try dispatch.register(Named(name: "second"), at: "ws://foo.example.com:80/a")
    try dispatch.register(Named(name: "third"), at: "foo.example.com/a")
    #expect(try await answer(dispatch, "foo.example.com/a") == "second")
  }

  @Test func `no registration removes another one`() async throws {
    for patterns in [
      ["*@foo.example.com", "foo.example.com/*"], ["foo.example.com/*", "*@foo.example.com"],
    ] {
      let dispatch = DispatchChallengeHandler()
      for pattern in patterns { try dispatch.register(Named(name: pattern), at: pattern) }
      #expect(try await answer(dispatch, "u:p@foo.example.com") == "*@foo.example.com")
      #expect(try await answer(dispatch, "foo.example.com/a") == "foo.example.com/*")
    }
  }

  @Test func `unregister removes its own registration alone`() async throws {
    let dispatch = DispatchChallengeHandler()
    let other = DispatchChallengeHandler()
    let first = try dispatch.register(Named(name: "1"), at: "h")
    let second = try dispatch.register(Named(name: "2"), at: "h")
    let foreign = try other.register(Named(name: "3"), at: "h")
    dispatch.unregister(foreign)
    #expect(try await answer(dispatch, "h") == "1")
    dispatch.unregister(first)
    dispatch.unregister(first)
    #expect(try await answer(dispatch, "h") == "2")
    dispatch.unregister(second)
    #expect(try await answer(dispatch, "h") == nil)
    #expect(try await answer(other, "h") == "3")
    #expect(throws: LocationError.self) { try dispatch.register(Named(name: "4"), at: "WS://h") }
  }

  @Test func `the next handler of an answer is passed on`() async throws {
    struct Next: ChallengeHandler {
      func canHandle(_ request: ChallengeRequest) -> Bool { true }
      func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        ChallengeResponse(authorization: secret("a"), nextHandler: Named(name: "next"))
      }
    }
    let dispatch = DispatchChallengeHandler()
    try dispatch.register(Next(), at: "h")
    let next = try await dispatch.handle(request("h"))?.nextHandler
    #expect((next as? Named)?.name == "next")
  }

  @Test func `random registrations are asked in the order of a model`() throws {
    var random = SeededRandom(seed: 7)
    var longest = 0
    for _ in 0..<1500 {
      let location = RandomLocation.location(&random)
      let patterns = (0..<12).map { _ in RandomLocation.pattern(&random, near: location) }
      let willing = patterns.map { _ in !random.oneIn(4) }
      let dispatch = DispatchChallengeHandler()
      for (index, pattern) in patterns.enumerated() {
        try dispatch.register(Named(name: "\(index)", isWilling: willing[index]), at: pattern.text)
      }
      // The slow model: among those that match and are left, take the one that none beats.
      var left = patterns.indices.filter { KaazingTree(patterns[$0]).matches(location) }
      var expected: [Int] = []
      while let best = left.first(where: { index in
        !left.contains { Self.beats(patterns[$0], patterns[index]) }
      }) {
        expected.append(best)
        left.removeAll { $0 == best }
      }
      #expect(left.isEmpty)
      let request = try request(location.text)
      let handlers = dispatch.handlers(for: request.location).compactMap {
        ($0 as? Named).flatMap { Int($0.name) }
      }
      #expect(handlers == expected, "\(location.text): \(patterns.map(\.text))")
      #expect(dispatch.canHandle(request) == expected.contains { willing[$0] })
      longest = max(longest, expected.count)
    }
    #expect(longest > 5)
  }

  /// The stated precedence, written down once more: kind by kind, exact over wildcard, then fewer wildcards.
  private static func beats(_ a: RandomLocation, _ b: RandomLocation) -> Bool {
    let kinds: [(RandomLocation) -> [String]] = [
      { $0.host }, { [$0.port ?? "80"] }, { $0.userInfo }, { $0.path },
    ]
    for kind in kinds {
      let (first, second) = (kind(a), kind(b))
      let exact = [first, second].map { $0.filter { $0 != "*" }.count }
      let wild = [first, second].map { $0.filter { $0 == "*" }.count }
      if exact[0] > exact[1] { return true }
      if exact[0] < exact[1] { return false }
      if wild[0] < wild[1] { return true }
      if wild[0] > wild[1] { return false }
    }
    return false
  }
}
