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
}

/// Runs scenarios of `pubnub_client.py`.
enum PubNubClient {
  static let python = Program.python(
    with: "pubnub", variable: "DATAVAULT_PUBNUB_PYTHON", environment: "pubnub")

  /// Expects that every check of a scenario succeeds, and that there are some.
  static func check(
    _ scenario: String, _ server: ServerFixture, _ keys: ServerFixture.Keys, _ more: String...,
    environment: [String: String]? = nil
  ) async throws {
    let python = try #require(python)
    let arguments =
      [
        "-W", "ignore", Repository.path("Tests/ReferenceReaders/pubnub_client.py"), scenario,
        server.origin, "pub=\(keys.publish)", "sub=\(keys.subscribe)",
      ] + more
    let program = try await onBlockingThread {
      try Program.run(python, arguments, environment: environment)
    }
    let lines = program.text.split(separator: "\n")
    #expect(!lines.contains { $0.hasPrefix("not ok") }, "\(program.text)\n\(program.errors)")
    #expect(lines.contains { $0.hasPrefix("ok") }, "\(program.errors)")
    #expect(program.status == 0)
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
