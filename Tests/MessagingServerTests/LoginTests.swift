import AccessControl
import ApplicationStore
import DataVault
import Foundation
import Logging
import MessagingQueue
import NIOCore
import NIOHTTP1
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

private let ana = made("ana")
private let shop = makeID(1042)

private func made(_ text: String) -> Name {
  do { return try Name(text) } catch { preconditionFailure("\(error)") }
}

private func makeID(_ number: Int64) -> ApplicationID {
  do { return try ApplicationID(number) } catch { preconditionFailure("\(error)") }
}

private func password(_ text: String) -> Password {
  Password(SecretBytes(copying: Array(text.utf8)))
}

private func source(_ address: String) -> LoginSource {
  LoginSource(try? SocketAddress(ipAddress: address, port: 1))
}

/// Which passwords are checked, with a clock that the test moves.
@Suite struct LoginGateTests {
  private final class Clock: Sendable {
    private let time = Mutex(Date(timeIntervalSince1970: 1_700_000_000))
    var now: Date { time.withLock { $0 } }
    func move(_ seconds: TimeInterval) { time.withLock { $0 += seconds } }
  }

  private let clock = Clock()
  private let realm = RealmHasher(
    key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)), iterationCount: 10)
  private let gate: LoginGate
  private let verifier: PasswordVerifier

  init() throws {
    let clock = clock
    gate = LoginGate(realm, now: { clock.now })
    verifier = try realm.verifier(for: password("right password"), user: ana, of: shop)
  }

  private func check(_ text: String, from address: String) async throws -> LoginGate.Outcome {
    try await gate.check(password(text), verifier, of: ana, in: shop, from: source(address))
  }

  @Test func `a thousand wrong passwords never lock out a user at another source`() async throws {
    for number in 0..<1000 {
      let outcome = try await check("wrong \(number)", from: "192.0.2.1")
      #expect(outcome != .right)
      #expect(try await check("right password", from: "192.0.2.2") == .right)
      clock.move(0.1)
    }
    // 100 seconds: 3 wrong ones without a wait and 6 behind waits; the right one is cached for a minute.
    #expect(gate.derivationCount == 11, "\(gate.derivationCount)")
    // A wait ends, and the right password then helps at the first source too.
    clock.move(300)
    #expect(try await check("right password", from: "192.0.2.1") == .right)
  }

  @Test func `clients that connect together with the right password derive one key`()
    async throws
  {
    try await withThrowingTaskGroup(of: LoginGate.Outcome.self) { group in
      for _ in 0..<50 {
        group.addTask { try await check("right password", from: "192.0.2.1") }
      }
      for try await outcome in group { #expect(outcome == .right) }
    }
    #expect(gate.derivationCount == 1)
  }

  @Test func `many guesses at the same time derive a bounded number of keys`() async throws {
    try await withThrowingTaskGroup(of: LoginGate.Outcome.self) { group in
      for number in 0..<500 {
        group.addTask { try await check("wrong \(number)", from: "192.0.2.1") }
      }
      for try await outcome in group { #expect(outcome != .right) }
    }
    #expect(gate.derivationCount == 3)
  }

  @Test func `a user that does not exist derives a key, and waits as one that does`() async throws {
    var outcomes: [[LoginGate.Outcome]] = [[], []]
    for _ in 0..<5 {
      outcomes[0].append(
        try await gate.check(
          password("anything"), nil, of: made("missing"), in: shop, from: source("192.0.2.1")))
      outcomes[1].append(try await check("anything", from: "192.0.2.2"))
    }
    #expect(outcomes[0] == outcomes[1])
    #expect(gate.derivationCount == 6)
  }

  @Test func `a new password ends the cached one`() async throws {
    #expect(try await check("right password", from: "192.0.2.1") == .right)
    let new = try realm.verifier(for: password("other password"), user: ana, of: shop)
    let outcome = try await gate.check(
      password("right password"), new, of: ana, in: shop, from: source("192.0.2.1"))
    #expect(outcome == .wrong)
  }

  @Test func `IPv6 addresses of one network are one source`() {
    #expect(source("2001:db8::1").text == source("2001:db8::2").text)
    #expect(source("2001:db8::1").text != source("2001:db8:0:1::1").text)
    #expect(source("::ffff:192.0.2.1").text == source("192.0.2.1").text)
    #expect(LoginSource(nil).text == "local")
    #expect(source("192.0.2.1").text == "192.0.2.1")
    #expect(source("2001:db8::1").text == "20010db800000000")
  }

  @Test(arguments: [
    // The last address is the one that the proxy has added.
    ("10.0.0.1", ["203.0.113.7, 192.0.2.9"], "192.0.2.9"),
    ("10.0.0.1", ["203.0.113.7", "192.0.2.9"], "192.0.2.9"),
    ("10.0.0.1", ["2001:db8::1"], "20010db800000000"),
    ("fd00::1", ["192.0.2.9"], "192.0.2.9"), ("", ["192.0.2.9"], "192.0.2.9"),
    ("10.0.0.1", [], "10.0.0.1"), ("10.0.0.1", ["unknown"], "10.0.0.1"),
    ("10.0.0.1", ["192.0.2.9, "], "10.0.0.1"), ("10.0.0.1", ["192.0.2.9:80"], "10.0.0.1"),
    // No proxy that the operator names.
    ("10.0.0.2", ["192.0.2.9"], "10.0.0.2"), ("127.0.0.1", ["192.0.2.9"], "127.0.0.1"),
  ])
  func `only a trusted proxy names the client, by the last address of X-Forwarded-For`(
    peer: String, fields: [String], client: String
  ) throws {
    let proxies = Set(["10.0.0.1", "fd00::1", "unix"].compactMap { TrustedProxy($0) })
    #expect(proxies.count == 3)
    let address = peer.isEmpty ? nil : try SocketAddress(ipAddress: peer, port: 1)
    let headers = HTTPHeaders(fields.map { ("X-Forwarded-For", $0) })
    let source = LoginSource(of: headers, from: address, trusting: proxies)
    #expect(source.text == client)
    #expect(LoginSource(of: headers, from: address, trusting: []) == LoginSource(address))
  }

  @Test func `a proxy is unix or an address`() {
    for text in ["", "10.0.0.0/8", "localhost", "10.0.0.1:80", "unix:/x"] {
      #expect(TrustedProxy(text) == nil, "\(text)")
    }
  }

  @Test func `addresses of one IPv4 /24 and of one IPv6 /48 are one network`() {
    #expect(source("192.0.2.1").network == source("192.0.2.255").network)
    #expect(source("192.0.2.1").network == source("::ffff:192.0.2.7").network)
    #expect(source("192.0.2.1").network != source("192.0.3.1").network)
    #expect(source("2001:db8:0:1::1").network == source("2001:db8:0:2::1").network)
    #expect(source("2001:db8:1::1").network != source("2001:db8::1").network)
    #expect(LoginSource(nil).network == "local")
  }
}

/// Passwords and tokens over HTTP, judged by curl.
@Suite struct LoginTests {
  @Test
  func `clients behind a trusted proxy wait for their own failures alone, over each protocol`()
    async throws
  {
    let now = Date()
    try await Self.run({
      $0.limits.trustedProxies = Set(["127.0.0.1"].compactMap { TrustedProxy($0) })
      // No wait ends.
      $0.now = { now }
    }) { fixture in
      for status in [401, 401, 401, 429] {
        let guess = try await ServerFixture.curl(
          fixture.url + Self.history(fixture), user: "ana:wrong password",
          headers: ["X-Forwarded-For: 192.0.2.1"])
        #expect(guess.status == status)
      }
      let right = try await ServerFixture.curl(
        fixture.url + Self.history(fixture), user: "ana:right password",
        headers: ["X-Forwarded-For: 192.0.2.1, 192.0.2.2"])
      #expect(right.status == 200)
      for address in ["192.0.2.1", "192.0.2.2"] {
        let socket = try await PusherSocket.open(
          fixture, "/stomp/closed", headers: "X-Forwarded-For: \(address)\r\n")
        try await socket.send(
          "CONNECT\naccept-version:1.2\nhost:closed\nlogin:ana\npasscode:wrong again\n\n\0")
        let text = try await socket.wait("an answer") { list in
          list.compactMap { if case .text(let text) = $0 { text } else { nil } }.first
        }
        #expect(text.contains("too many wrong passwords") == (address == "192.0.2.1"))
      }
    }
  }

  /// A server whose closed application has the user `ana` with the role `staff`, who can read `c`.
  private static func run(
    _ configure: (inout ServerConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    try await ServerFixture.run(configure) { fixture in
      try await fixture.grant(.read, "c", .role(made("staff")))
      try await fixture.put(user: "ana", "right password", roles: ["staff"])
      try await body(fixture)
    }
  }

  private static func history(_ fixture: ServerFixture, _ channel: String = "c") -> String {
    "/v2/history/sub-key/\(fixture.closed.subscribe)/channel/\(channel)?count=1"
  }

  private static func publish(_ fixture: ServerFixture) -> String {
    "/publish/\(fixture.closed.publish)/\(fixture.closed.subscribe)/0/c/0/1"
  }

  private static let challenges = Challenge.all(realm: "closed").map(\.field)

  @Test func `an application with users asks for a password, takes it, and refuses what it lacks`()
    async throws
  {
    try await Self.run { fixture in
      let url = fixture.url + Self.history(fixture)
      let none = try await ServerFixture.curl(url)
      #expect(none.status == 401 && none.challenges == Self.challenges)
      #expect(none.text.contains(#""status":401"#))
      let everywhere = fixture.url + "/v2/presence/sub-key/\(fixture.closed.subscribe)"
      #expect(try await ServerFixture.curl(everywhere).status == 401)
      #expect(try await ServerFixture.curl(everywhere, user: "ana:right password").status == 403)
      // curl itself answers the challenge.
      let answered = try await ServerFixture.curl(url, user: "ana:right password", ["--anyauth"])
      #expect(answered.text.contains("HTTP/1.1 200 OK"))
      #expect(try await ServerFixture.curl(url, user: "ana:right password").status == 200)
      let wrong = try await ServerFixture.curl(url, user: "ana:wrong password")
      #expect(wrong.status == 401 && wrong.challenges == Self.challenges)
      #expect(try await ServerFixture.curl(url, user: "missing:right password").status == 401)
      // The right password does not help for what the user lacks.
      let lacking = try await ServerFixture.curl(
        fixture.url + Self.publish(fixture), user: "ana:right password")
      #expect(lacking.status == 403 && lacking.challenges.isEmpty)
      #expect(lacking.text.contains("Forbidden"))
    }
  }

  @Test(arguments: ["Basic", "basic", "Application Basic", "application basic"])
  func `each form of Basic names a user`(scheme: String) async throws {
    try await Self.run { fixture in
      let text = Data("ana:right password".utf8).base64EncodedString()
      let answer = try await ServerFixture.curl(
        fixture.url + Self.history(fixture), headers: ["Authorization: \(scheme) \(text)"])
      #expect(answer.status == 200)
    }
  }

  @Test(arguments: ["Basic !", "Basic", "Negotiate YII=", "Bearer abc", "Application Token abc"])
  func `what names no one is answered by a challenge`(field: String) async throws {
    try await Self.run { fixture in
      let answer = try await ServerFixture.curl(
        fixture.url + Self.history(fixture), headers: ["Authorization: \(field)"])
      #expect(answer.status == 401 && answer.challenges == Self.challenges)
    }
  }

  @Test func `a token is taken as Application Token, and a revoked one is answered by a challenge`()
    async throws
  {
    try await Self.run { fixture in
      let signer = try await fixture.store.signer(of: fixture.closed.record.id)
      let token = try signer.issue(
        TokenContents(
          issue: Date(), minutes: 5,
          resources: TokenRights(channels: [TokenRights.Entry("d", .read)])))
      let headers = ["Authorization: Application Token \(token)"]
      let url = fixture.url + Self.history(fixture, "d")
      #expect(try await ServerFixture.curl(url, headers: headers).status == 200)
      let lacking = fixture.url + Self.history(fixture)
      #expect(try await ServerFixture.curl(lacking, headers: headers).status == 403)
      guard case .token(let read) = try signer.read(Array(token.utf8)) else { return }
      try await fixture.store.revoke(
        read.digest, of: fixture.closed.record.id, until: Date() + 300)
      try await eventually { try await ServerFixture.curl(url, headers: headers).status != 200 }
      let revoked = try await ServerFixture.curl(url, headers: headers)
      #expect(revoked.status == 401 && revoked.challenges == Self.challenges)
    }
  }

  @Test func `callers with PubNub's own forms see what they saw before there were users`()
    async throws
  {
    try await Self.run { fixture in
      for query in ["&auth=key", "&auth=key&signature=v2.x&timestamp=1"] {
        let answer = try await ServerFixture.curl(
          fixture.url + Self.history(fixture) + query, user: "ana:right password")
        #expect([400, 403].contains(answer.status) && answer.challenges.isEmpty, "\(query)")
      }
      // Without users, a password is ignored as before.
      let open = fixture.open
      let target = "/v2/history/sub-key/\(open.subscribe)/channel/c?count=1"
      #expect(try await ServerFixture.curl(fixture.url + target, user: "a:b").status == 200)
      let needsAuthority = "/v2/history/sub-key/\(open.subscribe)/channel/private-c?count=1"
      let refused = try await ServerFixture.curl(fixture.url + needsAuthority)
      #expect(refused.status == 403 && refused.challenges.isEmpty)
    }
  }

  @Test(arguments: [true, false])
  func `an open poll ends with a challenge after a removal or a new password`(
    removes: Bool
  ) async throws {
    try await Self.run { fixture in
      let target = "/v2/subscribe/\(fixture.closed.subscribe)/c/0"
      let first = try await ServerFixture.curl(fixture.url + target, user: "ana:right password")
      let place = try #require(ServerFixture.place(in: first.text))
      async let poll = ServerFixture.curl(
        fixture.url + target + "?tt=\(place)", user: "ana:right password")
      try await fixture.waitForPolls(1)
      if removes {
        try await fixture.store.removeUser(ana, of: fixture.closed.record.id)
      } else {
        try await fixture.put(user: "ana", "new password", roles: ["staff"])
      }
      let answer = try await poll
      #expect(answer.status == 401)
    }
  }

  @Test func `a new password ends the old one`() async throws {
    try await Self.run { fixture in
      let url = fixture.url + Self.history(fixture)
      #expect(try await ServerFixture.curl(url, user: "ana:right password").status == 200)
      try await fixture.put(user: "ana", "new password", roles: ["staff"])
      #expect(try await ServerFixture.curl(url, user: "ana:right password").status == 401)
      #expect(try await ServerFixture.curl(url, user: "ana:new password").status == 200)
    }
  }

  @Test func `guesses are answered by 429 with a time, and are saved in the tables`()
    async throws
  {
    let start = Date()
    try await Self.run({ $0.now = { start } }) { fixture in
      let url = fixture.url + Self.history(fixture)
      var statuses: [Int] = []
      for number in 0..<5 {
        statuses.append(
          try await ServerFixture.curl(url, user: "ana:wrong password \(number)").status)
      }
      #expect(statuses == [401, 401, 401, 429, 429])
      try await eventually { try await fixture.store.loginFailures().count == 3 }
    }
  }

  @Test func `no log has a password, a user or a verifier`() async throws {
    let lines = Lines()
    try await Self.run {
      $0.logger = Logger(label: "server") { _ in lines.handler }
      $0.logger.logLevel = .trace
      $0.engine.logger = $0.logger
    } _: { fixture in
      let url = fixture.url + Self.history(fixture)
      _ = try await ServerFixture.curl(url, user: "ana-the-user:right password")
      _ = try await ServerFixture.curl(url, user: "ana:right password")
      try await eventually { try await !fixture.store.loginFailures().isEmpty }
    }
    let text = lines.text
    #expect(!text.isEmpty)
    for secret in ["right password", "ana-the-user", "YW5hOnJpZ2h0IHBhc3N3b3Jk"] {
      #expect(!text.contains(secret))
    }
  }

  /// The lines of a logger.
  private final class Lines: Sendable {
    private let collected = Mutex("")
    var text: String { collected.withLock { $0 } }
    var handler: Handler { Handler(lines: self) }
    func add(_ line: String) { collected.withLock { $0 += line + "\n" } }

    struct Handler: LogHandler {
      let lines: Lines
      var metadata: Logger.Metadata = [:]
      var logLevel = Logger.Level.trace

      subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
      }

      func log(event: LogEvent) { lines.add("\(event.message) \(event.metadata ?? [:])") }
    }
  }
}

/// Passwords over a connection that others can read.
@Suite struct UnprotectedLoginTests {
  @Test func `a request without protection offers no challenge and takes no password`()
    async throws
  {
    try await ServerFixture.run { fixture in
      let id = fixture.closed.record.id
      let verifier = try fixture.store.keys.realm.verifier(
        for: password("right password"), user: ana, of: id)
      try await fixture.store.put(user: ana, verifier, roles: [], of: id)
      let home = try #require(fixture.server.gate.home)
      try await home.refresh()
      let application = try #require(home.directory.application(id))
      #expect(home.challenges(of: application, isProtected: false).isEmpty)
      #expect(home.challenges(of: application, isProtected: true).count == 3)
      let result = await home.login(
        .password(user: ana, password("right password")), to: application,
        from: source("192.0.2.1"), isProtected: false)
      guard case .unprotected = result else {
        Issue.record("\(result)")
        return
      }
      #expect(home.logins.derivationCount == 0)
    }
  }
}
