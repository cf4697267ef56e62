import Foundation
import MessagingClient
import NegotiateAuthentication
import TestSupport
import Testing

/// `Negotiate` with a KDC and Apache, and with servers that lie.
@Suite(
  .enabled(if: KerberosFixture.isAvailable, Comment(rawValue: KerberosFixture.skipReason)),
  KerberosServers())
struct KerberosServerTests {
  private let fixture: KerberosFixture

  init() throws { fixture = try #require(KerberosFixture.current) }

  @Test(.enabled(if: Self.curl != nil, "curl has no SPNEGO"))
  func `the servers of this suite accept another client`() async throws {
    #expect(try fixture.curl(#require(Self.curl)) == "welcome\n")
  }

  static let curl: String? = {
    let version = try? Program.run("/usr/bin/curl", ["--version"]).text
    return version?.contains("SPNEGO") == true ? "/usr/bin/curl" : nil
  }()

  @Test(arguments: [false, true])
  func `a ticket opens each connection, with a context of its own`(isDefault: Bool) async throws {
    let lines = try await fixture.get(isDefault: isDefault)
    #expect(
      lines.filter { $0.hasPrefix("status") || $0.hasPrefix("error") } == [
        "status 401 ", "status 200 welcome", "status 200 welcome",
        "status 401 ", "status 200 welcome", "status 200 welcome",
      ])
    let answers = lines.filter { $0.hasPrefix("answer Negotiate ") }
    #expect(answers.count == 2 && Set(answers).count == 2)
    // The server's proofs.
    #expect(lines.filter { $0.hasPrefix("field Negotiate ") }.count == 2)
  }

  @Test(arguments: [false, true])
  func `a missing ticket cache is an error that names it`(isDefault: Bool) async throws {
    let lines = try await fixture.get(cache: "absent", isDefault: isDefault)
    #expect(lines.contains { $0.hasPrefix("error handlerFailed") })
    let cause = try #require(lines.last)
    #expect(cause.hasPrefix("cause noCredentials: there is no ticket for HTTP@web.example.test"))
    #expect(cause.contains("/absent") && cause.contains("kinit"))
  }

  @Test(arguments: [false, true])
  func `an expired ticket is an error that says so`(isDefault: Bool) async throws {
    var cause = ""
    try await eventually {
      cause = try await fixture.get(cache: "short-lived", isDefault: isDefault).last ?? ""
      return cause.hasPrefix("cause")
    }
    #expect(cause.hasPrefix("cause credentialsExpired: the tickets for HTTP@web.example.test"))
  }

  @Test func `a server that the KDC does not know is an error that names it`() async throws {
    let cause = try #require(await fixture.get("http://other.example.test/").last)
    #expect(cause.hasPrefix("cause failed: the authentication at HTTP@other.example.test failed: "))
    #expect(cause.contains("HTTP/other.example.test@EXAMPLE.TEST not found in Kerberos database"))
  }

  @Test func `a wrong realm is an error that names it`() async throws {
    let configuration = fixture.clientConfiguration(realmOfServer: "OTHER.TEST")
    let cause = try #require(await fixture.get(configuration: configuration).last)
    #expect(cause.hasPrefix("cause failed: "))
    #expect(cause.contains("OTHER.TEST"))
  }

  @Test func `a KDC that does not answer is an error`() async throws {
    let configuration = fixture.clientConfiguration(kdcPort: try LoopbackSocket.freePorts(1)[0])
    // The ticket cache must not have the ticket of the server already.
    try fixture.login(to: "fresh", lifetime: "12h")
    let cause = try #require(
      try await fixture.get(cache: "fresh", configuration: configuration).last)
    #expect(cause.hasPrefix("cause failed: ") && cause.contains("KDC"))
  }

  // MARK: Servers that lie

  @Test func `a token of a hostile server is an error`() async throws {
    var random = SeededRandom(seed: 7)
    var tokens: [[UInt8]] = [
      [0], [0x60], [0xA1, 0x84, 0xFF, 0xFF, 0xFF, 0xFF],
      [0xA1, 0x07, 0x30, 0x05, 0xA0, 0x03, 0x0A],
      // SPNEGO: accepted, without a proof; rejected; another mechanism.
      [0xA1, 0x07, 0x30, 0x05, 0xA0, 0x03, 0x0A, 0x01, 0x00],
      [0xA1, 0x07, 0x30, 0x05, 0xA0, 0x03, 0x0A, 0x01, 0x02],
      [0xA1, 0x09, 0x30, 0x07, 0xA1, 0x05, 0x06, 0x03, 0x2A, 0x03, 0x04],
    ]
    for byteCount in [1, 10, 200, 40_000] {
      let bytes = (0..<byteCount).map { _ in UInt8(random.next(256)) }
      tokens += [bytes, [0xA1, 0x82] + bytes]
    }
    for token in tokens {
      let field = "Negotiate \(Data(token).base64EncodedString())"
      for answers in [[ScriptedServer.Answer(401, field)], [.init(200, field)]] {
        let server = try ScriptedServer([.init(401, "Negotiate")] + answers)
        let lines = try await fixture.get(port: server.port)
        #expect(lines.last?.hasPrefix("cause ") == true, "\(token.prefix(20)): \(lines)")
        #expect(!lines.contains { $0.hasPrefix("answer") && $0 != lines[1] })
      }
    }
  }

  @Test(arguments: [nil, "Negotiate", "Negotiate !", "Negotiate A===", #"Basic realm="a""#])
  func `a success without a proof is an error`(field: String?) async throws {
    let server = try ScriptedServer([.init(401, "Negotiate"), .init(200, field)])
    let lines = try await fixture.get(port: server.port)
    #expect(
      lines.contains { $0.hasPrefix("error serverNotAuthenticated: http://web.example.test ") })
    #expect(
      lines.last?.hasPrefix(
        "cause serverNotAuthenticated: HTTP@web.example.test has not proved its identity") == true)
  }

  @Test func `the proof of another authentication is an error`() async throws {
    let proof = try #require(await fixture.get().first { $0.hasPrefix("field ") }).dropFirst(6)
    let server = try ScriptedServer([.init(401, "Negotiate"), .init(200, String(proof))])
    let lines = try await fixture.get(port: server.port)
    #expect(lines.contains { $0.hasPrefix("error serverNotAuthenticated") })
    #expect(lines.last?.hasPrefix("cause ") == true, "\(lines)")
  }
}
