import CSQLite
import FaultVFS
import Foundation
import SealedVFS
import SystemPackage
import Testing

/// A database that is replaced after a connection has its lock, and before it opens log or journal.
@Suite struct ReplacedFileTests {
  /// Replaces the files of a database by those of `image`, once.
  private final class Replacement {
    var image: TemporaryDatabase?
    let suffix: String
    init(_ suffix: String) { self.suffix = suffix }

    func happen(at path: FilePath, in place: TemporaryDatabase) {
      guard let image, path.string.hasSuffix(suffix) else { return }
      self.image = nil
      for name in image.fileNames where !name.hasSuffix("-shm") {
        rename(image.directory.appending(name).string, place.directory.appending(name).string)
      }
    }
  }

  @Test(arguments: ["WAL", "DELETE"])
  func `the log or journal of the new file is neither used nor deleted`(mode: String) throws {
    let place = try TemporaryDatabase.made(rowCount: 600, mode: mode)
    // A copy of the same database, with the same identity, killed in a transaction.
    let busy = try place.afterKill()
    let writer = try busy.connect()
    try writer.run("PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 5")
    try writer.run("UPDATE t SET text = 'new ' || id WHERE id < 100; BEGIN")
    try writer.run("UPDATE t SET text = replace(text, 'canary', 'secret')")
    let image = try busy.afterKill()
    let expected = try image.contents()
    let replacement = Replacement(mode == "WAL" ? "-wal" : "-journal")
    let hook = HookVFS(named: "hook-\(place.directory.lastComponent?.string ?? "")") {
      replacement.happen(at: $0, in: place)
    }
    let connection = try place.connect(over: hook.name)
    replacement.image = image
    let failure = #expect(throws: SQLFailure.self) { try connection.rowCount }
    #expect(failure?.code == SQLITE_READONLY | 4 << 8)  // SQLITE_READONLY_DBMOVED
    #expect(place.fault?.code == .fileReplaced)
    connection.close()
    #expect(try place.changes(since: expected).isEmpty)
    #expect(try place.query("SELECT count(*) FROM t WHERE text LIKE 'new %'") == "99")
    #expect(try place.query("PRAGMA integrity_check") == "ok")
  }

  @Test(arguments: ["before", "in"])
  func `a connection commits nothing after another file took the database's place`(
    when: String
  ) throws {
    let (place, writer) = try TemporaryDatabase.reopened(mode: "WAL")
    try writer.run("UPDATE t SET text = 'first' WHERE id = 1")
    if when == "in" { try writer.run("BEGIN; UPDATE t SET text = 'lost' WHERE id = 2") }
    let copy = place.directory.appending("copy")
    try place.write(place.bytes(place.database), to: copy)
    #expect(rename(copy.string, place.database.string) == 0)
    let before = try place.contents()
    #expect(throws: SQLFailure.self) {
      try writer.run(when == "in" ? "COMMIT" : "UPDATE t SET text = 'lost' WHERE id = 2")
    }
    #expect(place.fault?.code == .fileReplaced)
    // The log at this path is the new file's.
    writer.close()
    #expect(place.exists(place.log))
    if when == "before" {
      #expect(try place.changes(since: before).isEmpty)
    }
    #expect(try place.query("SELECT text FROM t WHERE id = 1") == "first")
    #expect(try place.query("PRAGMA integrity_check") == "ok")
  }

  @Test(arguments: ["WAL", "PERSIST"])
  func `an open connection reads another database that replaced the contents in place`(
    mode: String
  ) throws {
    let (place, connection) = try TemporaryDatabase.reopened(mode: mode)
    let (other, writer) = try TemporaryDatabase.reopened(rowCount: 20, mode: mode)
    try writer.run("PRAGMA wal_autocheckpoint = 0; CREATE TABLE u (x); INSERT INTO u VALUES (1)")
    let killed: TemporaryDatabase
    if mode == "WAL" {
      killed = try other.afterKill()
    } else {
      try writer.run("PRAGMA cache_size = 3; BEGIN; UPDATE t SET text = text || '!'")
      killed = try other.afterKill()
    }
    try connection.run("PRAGMA journal_mode = \(mode); UPDATE t SET text = 'x' WHERE id = 1")
    #expect(try connection.rowCount == "300")

    // SQLite's superlock does this: new contents in the same files, and an index to rebuild.
    for name in killed.fileNames {
      let bytes = try killed.bytes(killed.directory.appending(name))
      try place.overwrite(place.directory.appending(name)) { $0 = bytes }
    }
    if mode == "WAL" {
      try place.overwrite(FilePath(place.database.string + "-shm")) { index in
        for offset in 0..<96 { index[offset] = 0 }
      }
    }
    #expect(try connection.first("SELECT count(*) FROM u") == "1")
    try connection.run("INSERT INTO u VALUES (2)")
    connection.close()
    #expect(try place.query("SELECT count(*) FROM u") == "2")
    #expect(try place.query("SELECT count(*) FROM t WHERE text NOT LIKE '%!'") == "20")
    #expect(try place.query("PRAGMA integrity_check") == "ok")
  }
}
