import ApplicationStore
import Foundation
import TestSupport
import Testing

@testable import MessagingServer

/// The stock clients of PubNub, Pusher and STOMP beside one another, each as publisher and as subscriber.
@Suite(.enabled(if: StockClients.python != nil, "pubnub, pysher, pusher or stomp.py is missing"))
struct ProtocolPairTests {
  @Test func `a message of each protocol reaches each protocol in the form that is documented`()
    async throws
  {
    let (python, environment) = try #require(StockClients.python)
    try await ServerFixture.runWithSTOMP { server in
      let keys = server.open
      try await PubNubClient.check(
        python,
        [
          "-W", "ignore", Repository.path("Tests/ReferenceReaders/protocol_pairs.py"),
          server.origin, server.stompOrigin, "app=\(keys.record.name)", "id=\(keys.record.id)",
          "pub=\(keys.publish)", "sub=\(keys.subscribe)", "secret=\(keys.secretKey)",
        ], environment: environment)
    }
  }
}

/// One Python that has the stock clients of all protocols.
enum StockClients {
  /// PubNub's Python with the modules of the other two; nil if it cannot use them.
  static let python: (executable: String, environment: [String: String])? = {
    guard let python = PubNubClient.python,
      let path = try? Program.run(Repository.path("scripts/stock-clients"))
    else { return nil }
    var environment = ProcessInfo.processInfo.environment
    environment["PYTHONPATH"] = path.text.trimmingCharacters(in: .newlines)
    let program = try? Program.run(
      python, ["-c", "import pubnub, pusher, pysher, stomp"], environment: environment)
    return program?.status == 0 ? (python, environment) : nil
  }()
}
