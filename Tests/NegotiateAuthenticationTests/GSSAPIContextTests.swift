import MessagingClient
@testable import NegotiateAuthentication
import Testing

/// What a context refuses without a KDC.
@Suite struct GSSAPIContextTests {
  @Test(arguments: [
    "h", "web.example.test", "[::1]", "127.0.0.1", "a_b", String(repeating: "a", count: 255),
  ])
  func `a host of a URL is accepted`(host: String) throws {
    _ = try GSSAPIContext(host: host)
  }

  @Test(arguments: [
    "", "[]", "a b", "a@b", "a/b", "a\u{0}", "a\n", "ü", String(repeating: "a", count: 256),
  ])
  func `what is no host is refused`(host: String) {
    let error = #expect(throws: GSSAPIError.self) { _ = try GSSAPIContext(host: host) }
    #expect(error?.code == .invalidArgument)
  }

  @Test(arguments: ["", "FILE:a\u{0}b", "a\n", String(repeating: "a", count: 1025)])
  func `the name of a ticket cache is bounded, without control characters`(cache: String) {
    let error = #expect(throws: GSSAPIError.self) {
      _ = try GSSAPIContext(host: "h", credentialCache: cache)
    }
    #expect(error?.code == .invalidArgument)
  }

  @Test func `a missing ticket is an error, and the context then serves nothing`() async throws {
    let context = try GSSAPIContext(host: "h", credentialCache: "FILE:/nonexistent/tickets")
    #expect(await code { _ = try await context.next(serverToken: nil) } == .noCredentials)
    #expect(await code { _ = try await context.next(serverToken: nil) } == .contextUsed)
    #expect(await code { _ = try await context.next(serverToken: [1]) } == .contextUsed)
    #expect(await code { try await context.finish(serverToken: [1]) } == .contextUsed)
    #expect(await code { try await context.finish(serverToken: nil) } == .contextUsed)
  }

  @Test func `a context answers no token before its own`() async throws {
    let context = try GSSAPIContext(host: "h")
    #expect(await code { _ = try await context.next(serverToken: [1]) } == .contextUsed)
    #expect(await code { try await context.finish(serverToken: nil) } == .contextUsed)
  }

  @Test func `the words of a server are shown escaped and bounded`() {
    let words = "realm \u{1B}[2J\u{202E}\n\"x\"" + String(repeating: "y", count: 1000)
    let text = "\(GSSAPIError.failed("HTTP@h", words))"
    #expect(text.contains(#"realm \u{1b}[2J\u{202e}\u{a}\"x\""#))
    #expect(text.count < 700)
  }

  private func code(_ body: () async throws -> Void) async -> GSSAPIError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? GSSAPIError)?.code
    }
  }
}
