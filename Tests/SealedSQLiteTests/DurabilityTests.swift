import FaultVFS
import FileRecording
import Foundation
import GRDB
import SealedSQLite
import SystemPackage
import TestSupport
import Testing

@Suite struct DurabilityTests {
  private let directory = ScratchFolder()
  private var path: FilePath { directory("test.db") }

  /// Commits through a pool over a recording VFS, with a mark after each commit returned.
  private func recordCommits(_ durability: Durability, count: Int = 20) throws -> [FileEvent] {
    let recorder = FileRecorder()
    let pool = try SealedDatabase.openPool(
      at: path, key: testKey(), durability: durability, over: RecordingVFS(recorder).name)
    try pool.write { try $0.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY)") }
    recorder.mark("ready")
    for _ in 0..<count {
      try pool.write { try $0.execute(sql: "INSERT INTO t DEFAULT VALUES") }
      recorder.mark("acknowledged")
    }
    let events = recorder.events
    try pool.close()
    return events
  }

  /// The number of acknowledgements that came while bytes of the log were not synchronized.
  private func unsynchronizedAcknowledgements(_ events: [FileEvent]) -> Int {
    var owed: Set<FilePath> = []
    var count = 0
    for event in events {
      switch event {
      case .write(let path, _, _) where path.string.hasSuffix("-wal"): owed.insert(path)
      case .synchronize(let path): owed.remove(path)
      case .mark("acknowledged") where !owed.isEmpty: count += 1
      default: break
      }
    }
    return count
  }

  @Test func `with full durability, a sync precedes every acknowledged commit`() throws {
    let events = try recordCommits(.full)
    let writes = events.filter { if case .write = $0 { true } else { false } }
    #expect(writes.count >= 20)
    #expect(unsynchronizedAcknowledgements(events) == 0)
  }

  @Test func `with normal durability, commits are acknowledged before a sync`() throws {
    let events = try recordCommits(.normal)
    #expect(unsynchronizedAcknowledgements(events) == 20)
  }

  @Test func `the writer has the requested settings, not those of GRDB's pool`() throws {
    let pool = try SealedDatabase.openPool(at: path, key: testKey())
    let settings = try pool.writeWithoutTransaction { db in
      try ["synchronous", "journal_mode", "secure_delete", "page_size"].map {
        try String.fetchOne(db, sql: "PRAGMA \($0)")
      }
    }
    #expect(settings == ["2", "wal", "1", "4096"])
    // GRDB's own pool leaves NORMAL.
    let plain = try DatabasePool(path: directory("plain.db").string)
    let level = try plain.writeWithoutTransaction {
      try Int.fetchOne($0, sql: "PRAGMA synchronous")
    }
    #expect(level == 1)
  }

  @Test func `the files of sorts and temporary tables contain no plaintext rows`() throws {
    let pool = try SealedDatabase.openPool(at: path, key: testKey())
    try pool.write { db in
      try db.execute(
        sql: """
          PRAGMA cache_size = 10;
          CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            SELECT i, 'canary ' || hex(randomblob(200)) AS text FROM n;
          PRAGMA temp.cache_size = 10;
          CREATE TEMP TABLE u AS SELECT * FROM t ORDER BY text;
          """)
      let rows = try Row.fetchCursor(db, sql: "SELECT * FROM t ORDER BY text DESC")
      _ = try rows.next()
      // SQLite opens its unnamed files, unlinks them immediately, and keeps them open.
      let links = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        .map { "/proc/self/fd/\($0)" }
        .filter {
          let target = try? FileManager.default.destinationOfSymbolicLink(atPath: $0)
          return target?.contains("etilqs") == true
        }
      #expect(links.isEmpty == false)
      let contents = links.compactMap { FileManager.default.contents(atPath: $0) }
      #expect(contents.contains { $0.count > 100_000 })
      #expect(contents.allSatisfy { $0.range(of: Data("canary".utf8)) == nil })
    }
  }
}
