import Foundation
import TestSupport
import Testing

@testable import MessagingServer

/// PubNub's own SDK for Python, unchanged, as the judge of every call that it has.
@Suite(.enabled(if: PubNubClient.python != nil, "pubnub is not installed"))
struct StockClientTests {
  @Test(arguments: [
    "line", "messages", "presence", "groups", "patterns", "filters", "history", "unavailable",
  ])
  func `the stock client does this in an open application`(scenario: String) async throws {
    try await ServerFixture.run { server in
      try await PubNubClient.check(scenario, server, server.open)
    }
  }

  @Test(arguments: [("deletion", true), ("access", false)])
  func `the stock client does this with the secret key`(
    scenario: String, isOpen: Bool
  ) async throws {
    try await ServerFixture.run { server in
      let keys = isOpen ? server.open : server.closed
      try await PubNubClient.check(scenario, server, keys, "secret=\(keys.secretKey)")
    }
  }

  @Test(arguments: ["line", "presence", "history", "access"])
  func `the stock client for asyncio does this`(scenario: String) async throws {
    try await ServerFixture.run { server in
      let (keys, secret) =
        scenario == "access" ? (server.closed, server.closed.secretKey) : (server.open, "")
      try await PubNubClient.check(scenario, server, keys, "sdk=asyncio", "secret=\(secret)")
    }
  }
}

/// PubNub's own SDK for JavaScript, unchanged, as its build for the web.
@Suite(
  .enabled(if: PubNubClient.bundle != nil, "PUBNUB_JS names no pubnub.js, or there is no node"))
struct StockJavaScriptClientTests {
  @Test func `the stock client for JavaScript publishes, listens, reads history and is refused`()
    async throws
  {
    let (node, bundle) = try #require(PubNubClient.bundle)
    try await ServerFixture.run { server in
      let (open, closed) = (server.open, server.closed)
      try await PubNubClient.check(
        node,
        [
          Repository.path("Tests/ReferenceReaders/pubnub_client.js"), bundle, server.origin,
          "pub=\(open.publish)", "sub=\(open.subscribe)", "closed=\(closed.subscribe)",
        ])
    }
  }
}

/// Runs scenarios of `pubnub_client.py` and `pubnub_client.js`.
enum PubNubClient {
  static let python = Program.python(
    with: "pubnub", variable: "DATAVAULT_PUBNUB_PYTHON", environment: "pubnub")

  /// Node, and the SDK's `pubnub.js` that PUBNUB_JS names.
  static let bundle: (node: String, bundle: String)? = {
    let variables = ProcessInfo.processInfo.environment
    let node = (variables["PATH"] ?? "").split(separator: ":").map { "\($0)/node" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
    guard let node, let bundle = variables["PUBNUB_JS"],
      FileManager.default.isReadableFile(atPath: bundle)
    else { return nil }
    return (node, bundle)
  }()

  /// Expects that every check of a scenario succeeds, and that there are some.
  static func check(
    _ scenario: String, _ server: ServerFixture, _ keys: ServerFixture.Keys, _ more: String...,
    environment: [String: String]? = nil
  ) async throws {
    let script = Repository.path("Tests/ReferenceReaders/pubnub_client.py")
    try await check(
      #require(python),
      [
        "-W", "ignore", script, scenario, server.origin, "pub=\(keys.publish)",
        "sub=\(keys.subscribe)",
      ] + more, environment: environment)
  }

  /// Expects that a program prints only checks that succeed, and some of them.
  static func check(
    _ executable: String, _ arguments: [String], environment: [String: String]? = nil
  ) async throws {
    let program = try await onBlockingThread {
      try Program.run(executable, arguments, environment: environment)
    }
    let lines = program.text.split(separator: "\n")
    #expect(!lines.contains { $0.hasPrefix("not ok") }, "\(program.text)\n\(program.errors)")
    #expect(lines.contains { $0.hasPrefix("ok") }, "\(program.errors)")
    try #require(program.status == 0)
  }

  /// Runs `body` on a thread that can block.
  static func onBlockingThread<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
