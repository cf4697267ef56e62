import GRDB
import MessagingQueue
import Testing

@Suite struct SnapshotReaderTests {
  private let plain: PlainEngine
  private let snapshots: SnapshotReader

  init() throws {
    plain = try PlainEngine()
    snapshots = SnapshotReader(plain.pool)
  }

  @Sendable private static func count(_ db: Database) throws -> Int? {
    try Int.fetchOne(db, sql: "SELECT count(*) FROM message")
  }

  @Test func `a closed reader refuses reads without using the pool`() async throws {
    #expect(try snapshots.readBlocking(Self.count) == 0)
    #expect(try await snapshots.read(during: "reading", Self.count) == 0)
    snapshots.close()
    // The pool is still open, so the reader itself refuses.
    #expect(code { _ = try snapshots.readBlocking(Self.count) } == .stopped)
    #expect(await code { _ = try await snapshots.read(during: "reading", Self.count) } == .stopped)
    #expect(try await plain.pool.read(Self.count) == 0)
  }
}
