import CFuzzedSQLite
import Foundation
import SealedVFS
import SystemPackage
import VaultCrypto

/// Page 1 as it lies in the log: its 16 clear bytes, its frames, and what a checkpoint makes of them.
///
/// Whatever is changed there, the database stays one that its own key opens.
final class FirstPageFixture {
  private static let headerByteCount = 16
  private static let logHeaderByteCount = 32
  private static let frameByteCount = 24 + 4096
  private static let question = "SELECT id || text FROM t ORDER BY id"
  /// What is done with a changed log before the database is let go.
  private static let endings = [
    "PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(FULL)",
    "PRAGMA wal_checkpoint(RESTART)", "PRAGMA wal_checkpoint(TRUNCATE)",
    "INSERT INTO t (text) VALUES ('more')", "UPDATE t SET text = text || 'z'; VACUUM",
    "SELECT count(*) FROM t", "PRAGMA journal_mode = DELETE",
  ]

  private let folder: FuzzFolder
  private let registration: KeyRegistration
  private let database: [UInt8]
  private let log: [UInt8]
  /// Where the page of each frame that holds page 1 begins.
  private let firstPages: [Int]
  /// What was there at some commit.
  private var allowed: Set<[String]> = []

  init() throws {
    folder = try FuzzFolder()
    registration = try SealedVFS.register(
      key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)), at: FilePath(folder.database))
    let connection = Connection(folder.database, vfs: SealedVFS.name)
    connection.run(
      """
      PRAGMA synchronous = OFF; CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT);
      INSERT INTO t (text) VALUES ('one'), (hex(zeroblob(900))); PRAGMA journal_mode = WAL
      """)
    if let rows = connection.run(Self.question) { allowed.insert(rows) }
    for round in 0..<4 {
      // A new table changes page 1 each time.
      connection.run(
        "BEGIN; CREATE TABLE n\(round) (a); UPDATE t SET text = text || '\(round)'; COMMIT")
      if let rows = connection.run(Self.question) { allowed.insert(rows) }
    }
    database = folder.contents("f.db") ?? []
    log = folder.contents("f.db-wal") ?? []
    let starts = stride(
      from: Self.logHeaderByteCount, to: log.count - Self.frameByteCount + 1,
      by: Self.frameByteCount)
    firstPages = starts.filter { [log] in log[$0..<$0 + 4].elementsEqual([0, 0, 0, 1]) }
      .map { $0 + 24 }
    require(firstPages.count >= 4, "page 1 is not in the log")
  }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    folder.put("f.db", database)
    folder.put("f.db-wal", changed(edits))
    folder.remove("f.db-shm")
    let connection = Connection(folder.database, vfs: SealedVFS.name)
    let rows = connection.run(Self.question)
    require(rows.map(allowed.contains) ?? true, "a wrong row")
    connection.run(Self.endings[Int(edits.mode >> 2) % Self.endings.count])
    _ = consume connection
    requireOwnHeader("it is closed")

    // Without the log, which may hold what cannot be read any more.
    folder.remove("f.db-wal")
    folder.remove("f.db-shm")
    let alone = Connection(folder.database, vfs: SealedVFS.name)
    require(
      alone.run("SELECT count(*) FROM sqlite_master") != nil, "the database does not open any more")
  }

  private func changed(_ edits: Edits) -> [UInt8] {
    var log = log
    switch edits.mode & 3 {
    case 0: edit(&log, edits, at: firstPages.map { $0..<$0 + Self.headerByteCount })
    case 1: edit(&log, edits, at: firstPages.map { $0 - 24..<$0 + 4096 })
    case 2:
      let last = firstPages[firstPages.count - 1]
      edit(&log, edits, at: [last..<last + Self.headerByteCount])
    default: edits.apply(to: &log)
    }
    return log
  }

  /// Edits these places as if they lay one after the other.
  private func edit(_ log: inout [UInt8], _ edits: Edits, at places: [Range<Int>]) {
    var bytes = places.flatMap { log[$0] }
    edits.apply(to: &bytes)
    for place in places where bytes.count >= place.count {
      log.replaceSubrange(place, with: bytes.prefix(place.count))
      bytes.removeFirst(place.count)
    }
  }

  private func requireOwnHeader(_ moment: String) {
    let found = folder.contents("f.db")?.prefix(Self.headerByteCount)
    require(
      found?.elementsEqual(database.prefix(Self.headerByteCount)) ?? false,
      "the database has another header after \(moment)")
  }

  func remove() { folder.removeAll() }
}
