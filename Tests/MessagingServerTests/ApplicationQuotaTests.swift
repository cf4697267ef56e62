import AccessControl
import ApplicationStore
import Foundation
import MessagingQueue
import TestSupport
import Testing

@testable import MessagingServer

/// What an application can store, as it is decided before the commit.
@Suite struct ApplicationQuotaTests {
  private static func run(
    maximumByteCount: Int,
    _ body: @escaping @Sendable (ServerFixture, DirectoryEntry) async throws -> Void
  ) async throws {
    try await ServerFixture.run { server in
      let id = server.open.record.id
      try await server.store.setRetention(
        ApplicationRetention(maximumMinutes: 10, maximumByteCount: maximumByteCount), of: id)
      let entry = try await eventually {
        let entry = server.server.gate.home?.directory.application(id)
        return entry?.record.retention.byteCount == maximumByteCount ? entry : nil
      }
      try await body(server, entry)
    }
  }

  @Test func `a message counts with its headers and its row, before a sweep and after it`()
    async throws
  {
    try await Self.run(maximumByteCount: 10_000) { server, entry in
      let message = Message(
        channel: try Channel("shop/c"), payload: [1],
        headers: ["h": String(repeating: "x", count: 350)])
      let quotas = ApplicationQuotas()
      var count = 0
      while count < 1000, quotas.take([message], of: entry) { count += 1 }
      #expect(count == 10)
      try await server.engine.publish(Array(repeating: message, count: count))
      try await quotas.sweep([entry], in: server.engine, at: Date())
      #expect(!quotas.take([message], of: entry))
      // An acknowledgement needs no room.
      #expect(quotas.take([], of: entry))
    }
  }

  @Test func `an application publishes to no more channels than it can have`() async throws {
    try await Self.run(maximumByteCount: 1 << 20) { server, entry in
      let quotas = ApplicationQuotas(maximumChannelCount: 3)
      func takes(_ name: String) async throws -> Bool {
        try await quotas.take(Channel("shop/\(name)"), of: entry, in: server.engine)
      }
      for name in ["a", "b", "c", "a"] { #expect(try await takes(name), "\(name)") }
      #expect(try await !takes("d"))
      // Only one of them was published to.
      try await server.engine.publish(Message(channel: Channel("shop/a"), payload: [1]))
      try await quotas.sweep([entry], in: server.engine, at: Date())
      for name in ["d", "e", "a", "d"] { #expect(try await takes(name), "\(name)") }
      #expect(try await !takes("b"))
      // A channel that the log has is never refused.
      try await server.engine.publish(Message(channel: Channel("shop/f"), payload: [1]))
      #expect(try await takes("f"))
    }
  }
}
