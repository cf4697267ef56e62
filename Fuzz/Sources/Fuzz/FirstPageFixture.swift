import CFuzzedSQLite
import Foundation
import SealedVFS
import SystemPackage
import VaultCrypto

/// Changes of page 1 in the log: its 16 unencrypted bytes, its frames, and their result after a
/// checkpoint.
///
/// After every change, the database must still open with its own key.
final class FirstPageFixture {
  private static let headerByteCount = 16
  private static let logHeaderByteCount = 32
  private static let frameByteCount = 24 + 4096
  private static let question = "SELECT id || text FROM t ORDER BY id"
  /// The operation on a changed log before the database is closed.
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
  /// The offset of the page in each frame with page 1.
  private let firstPages: [Int]
  /// The contents of the database at each commit.
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
      // Each new table changes page 1.
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

    // Without the log, which can contain unreadable frames.
    folder.remove("f.db-wal")
    folder.remove("f.db-shm")
    let alone = Connection(folder.database, vfs: SealedVFS.name)
    require(
      alone.run("SELECT count(*) FROM sqlite_master") != nil, "the database no longer opens")
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

  /// Edits these positions as if they were contiguous.
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
