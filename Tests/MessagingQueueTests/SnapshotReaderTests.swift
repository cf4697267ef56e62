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

  @Test func `once it is closed it reads nothing, and the pool is not asked`() async throws {
    #expect(try snapshots.read(Self.count) == 0)
    #expect(try await snapshots.readAside(Self.count) == 0)
    snapshots.close()
    // The pool is open still: whoever is refused here is refused before it.
    #expect(code { _ = try snapshots.read(Self.count) } == .stopped)
    #expect(await code { _ = try await snapshots.readAside(Self.count) } == .stopped)
    #expect(try await plain.pool.read(Self.count) == 0)
  }
}
