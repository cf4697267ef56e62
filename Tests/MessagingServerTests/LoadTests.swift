import Foundation
import MessagingQueue
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import MessagingServer

/// Clients that are too many, too slow or too fast, beside clients that behave.
@Suite struct LoadTests {
  private struct Silent: Decodable {
    let closed: Int
    let oneTooMany: Bool
    let refused: Int
  }

  private struct Flood: Decodable {
    let acknowledged, refused, quiet, passed: Int
    let other: [Int]
  }

  /// Runs `server_load.py`.
  private static func load<Seen: Decodable>(
    _ mode: String, _ server: ServerFixture, _ arguments: String...
  ) async throws -> Seen {
    let script = Repository.path("Tests/ReferenceReaders/server_load.py")
    let all = [script, mode, server.origin] + arguments
    let program = try await PubNubClient.onBlockingThread {
      try Program.run("/usr/bin/python3", all)
    }
    try #require(program.status == 0, "\(program.errors)")
    print("server load \(mode): \(program.text.trimmingCharacters(in: .newlines))")
    return try JSONDecoder().decode(Seen.self, from: Data(program.output))
  }

  /// DATAVAULT_SILENT_CONNECTIONS: how many connections, if `ulimit -n` allows them; default: 2,000.
  @Test func `connections without a whole request are closed, and a client beside them is served`()
    async throws
  {
    // In a process of its own: Foundation's Process fails in one with so many descriptors.
    await #expect(processExitsWith: .success) {
      let wanted = setting("DATAVAULT_SILENT_CONNECTIONS") ?? 2_000
      let count = min(wanted, Int(getdtablesize()) - 200)
      try await ServerFixture.run {
        $0.limits.requestTime = .seconds(3)
        $0.maximumConnectionCount = count + 1
      } _: { server in
        let seen: Silent = try await Self.load("silent", server, String(count))
        #expect(seen.closed == count)
        #expect(seen.oneTooMany, "it was not closed")
        #expect(seen.refused == 0)
      }
    }
  }

  @Test func `an application that floods the server delays and refuses no message of another`()
    async throws
  {
    var limits = Admission.Limits()
    limits.operationCount = 32
    limits.quietOperationCount = 2
    let admission = AdmissionGate(limits)
    try await ServerFixture.run {
      $0.operations = ServerOperations(
        registry: nil, accessLog: nil, logger: $0.logger, admission: admission, watchdog: nil,
        notify: { _ in })
    } _: { server in
      try await server.open(server.closed)
      let seen: Flood = try await Self.load(
        "flood", server, server.open.publish, server.open.subscribe, server.closed.publish,
        server.closed.subscribe)
      #expect(seen.acknowledged > 20)
      #expect(seen.refused > 0)
      #expect(seen.other == [])
      #expect(seen.quiet == 20)
      // How many messages of the flood were acknowledged while a quiet one waited.
      #expect(seen.passed < 500)
    }
  }

  @Test func `a subscriber that never reads gets no second answer, is closed, and delays no other`()
    async throws
  {
    let scratch = ScratchFolder()
    let log = try LineWriter(scratch("access"), .json)
    try await ServerFixture.run {
      $0.limits.answerTime = .seconds(2)
      $0.operations = ServerOperations(accessLog: AccessLog(log), logger: $0.logger)
    } _: { server in
      let channel = try Channel("shop/large")
      let large = Message(
        channel: channel, payload: Array("\"\(String(repeating: "x", count: 32_000))\"".utf8))
      func publishLarge(_ count: Int) async throws -> Timetoken? {
        try await server.engine.publish(Array(repeating: large, count: count)).last
      }
      let last = try await #require(publishLarge(40))
      let path = "/v2/subscribe/\(server.open.subscribe)/large/0"
      var place = Substring(last.description)

      // Each answer would have 1 MiB.
      let stuck = try await server.connectWithoutReading()
      let poll = "GET \(path)?tt=1 HTTP/1.1\r\nHost: a\r\n\r\n"
      try await stuck.writeAndFlush(ByteBuffer(string: String(repeating: poll, count: 300)))
      let waiting = try await server.connectWithoutReading()
      try await waiting.writeAndFlush(
        ByteBuffer(string: "GET \(path)?tt=\(place) HTTP/1.1\r\nHost: a\r\n\r\n"))
      try await server.waitForPolls(1)

      _ = try await publishLarge(20)
      var arrived = 0
      while arrived < 20 {
        let answer = try await server.get(path + "?tt=\(place)").text
        arrived += answer.ranges(of: #""d":"#).count
        place = try #require(ServerFixture.place(in: answer))
      }
      #expect(arrived == 20)

      // The system has taken some megabytes off the server.
      await log.flush(within: .seconds(60))
      let sent = scratch.contents(of: "access") ?? ""
      #expect(sent.ranges(of: #""bytesOut":1"#).count < 10)
      // What the system has taken for the other counts as read.
      try await server.waitForConnections(1)
      try await stuck.close()
      try await waiting.close()
    }
  }
}
