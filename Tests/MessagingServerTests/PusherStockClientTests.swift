import AccessControl
import ApplicationStore
import Foundation
import TestSupport
import Testing

@testable import MessagingServer

/// Pusher's own SDK for servers, and pysher for clients, unchanged.
@Suite(.enabled(if: PusherClient.python != nil, "pysher and pusher are not installed"))
struct PusherStockClientTests {
  @Test(arguments: ["line", "private", "calls", "cache", "encrypted", "unknown"])
  func `the stock clients do this in an open application`(scenario: String) async throws {
    try await ServerFixture.run { server in
      try await PusherClient.check(scenario, server, server.open)
    }
  }

  @Test func `a closed application needs signatures or tokens`() async throws {
    try await ServerFixture.run { server in
      let token = try await server.token(for: "private-t")
      try await PusherClient.check("closed", server, server.closed, "token=\(token)")
    }
  }
}

/// Pusher's client for JavaScript, unchanged, which comes from no registry that the tests use.
@Suite(
  .enabled(
    if: PusherScript.bundle != nil && PusherScript.node != nil,
    "node is not installed, or PUSHER_JS does not name dist/node/pusher.js of pusher-js"))
struct PusherScriptTests {
  @Test func `pusher-js does the same`() async throws {
    try await ServerFixture.run { server in
      let (node, bundle) = (
        try #require(PusherScript.node), try #require(PusherScript.bundle)
      )
      let parts = server.origin.split(separator: ":").map(String.init)
      let arguments =
        [Repository.path("Tests/ReferenceReaders/pusher_client.js"), bundle] + parts
        + [server.open.subscribe, server.open.secretKey]
      let program = try await PubNubClient.onBlockingThread { try Program.run(node, arguments) }
      let lines = program.text.split(separator: "\n")
      #expect(!lines.contains { $0.hasPrefix("not ok") }, "\(program.text)\n\(program.errors)")
      #expect(lines.contains { $0.hasPrefix("ok") }, "\(program.errors)")
      #expect(program.status == 0)
    }
  }
}

private enum PusherScript {
  static let bundle = ProcessInfo.processInfo.environment["PUSHER_JS"].flatMap {
    FileManager.default.isReadableFile(atPath: $0) ? $0 : nil
  }
  static let node = ["/usr/bin/node", "/usr/local/bin/node"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }
}

/// Runs scenarios of `pusher_client.py`.
enum PusherClient {
  static let python = Program.python(
    with: "pysher, pusher", variable: "DATAVAULT_PUSHER_PYTHON", environment: "pusher")

  /// Expects that every check of a scenario succeeds, and that there are some.
  static func check(
    _ scenario: String, _ server: ServerFixture, _ keys: ServerFixture.Keys, _ more: String...,
    environment: [String: String]? = nil
  ) async throws {
    try await PubNubClient.check(
      #require(python),
      [
        "-W", "ignore", Repository.path("Tests/ReferenceReaders/pusher_client.py"), scenario,
        server.origin, "id=\(keys.record.id)", "key=\(keys.subscribe)", "secret=\(keys.secretKey)",
      ] + more, environment: environment)
  }
}

extension ServerFixture {
  /// A token of the closed application that reads one channel.
  func token(for channel: String, userID: String? = nil) async throws -> String {
    var resources = TokenRights()
    resources.channels = [.init(channel, [.read])]
    let contents = try TokenContents(
      issue: Date(), minutes: 10, resources: resources, authorizedUserID: userID)
    return try await store.signer(of: closed.record.id).issue(contents)
  }
}
