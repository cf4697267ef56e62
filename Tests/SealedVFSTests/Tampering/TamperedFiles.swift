import FaultVFS
import SealedVFS
import SystemPackage
import TestSupport

/// The files of a small sealed database at one moment, and the states that they can show.
struct TamperedFiles {
  enum Kind: String, CaseIterable, Sendable {
    /// A closed database.
    case database
    /// A log of four commits beside the database.
    case log
    /// A hot journal of one segment; the database is already changed.
    case journal
    /// A hot journal of several segments, after the cache was spilled.
    case spilledJournal
  }

  let kind: Kind
  let path: FilePath
  var files: [String: [UInt8]]
  /// The digests of the allowed states: one, or for a log the state after each commit.
  let allowed: Set<Int>

  /// The file to change.
  var target: String {
    switch kind {
    case .database: path.string
    case .log: path.string + "-wal"
    case .journal, .spilledJournal: path.string + "-journal"
    }
  }

  var bytes: [UInt8] { files[target] ?? [] }

  /// The files with a change to the target.
  func changed(_ body: (inout [UInt8]) -> Void) -> [String: [UInt8]] {
    var files = files
    body(&files[target, default: []])
    return files
  }

  /// The offsets to change: the headers, and a sample of the other bytes.
  ///
  /// Of a long journal it is always a sample.
  var indices: [Int] {
    let headers = kind == .spilledJournal ? laterHeaders : []
    let step = Exhaustive.distance(31) * (kind == .spilledJournal ? 11 : 1)
    let first = Exhaustive.first(kind.rawValue, of: step)
    return bytes.indices.filter { index in
      index % step == first || index < 600 || index >= bytes.count - 100
        || headers.contains { ($0..<$0 + 80).contains(index) }
    }
  }

  /// The offsets of the segments after the first.
  var laterHeaders: [Int] {
    stride(from: 512, to: bytes.count - 4, by: 512).filter { offset in
      Array(bytes[offset..<offset + 4]) == [0x00, 0x44, 0x56, 0x4A]
    }
  }
}

/// A directory in memory in which tampered files are opened.
final class TamperingFixture {
  let disk = MemoryDisk()
  let path: FilePath
  private let registration: KeyRegistration

  init() throws {
    path = FilePath("/\(disk.name)/t.db")
    registration = try SealedVFS.register(key: TemporaryDatabase.key(), at: path, over: disk.name)
  }

  func connect() throws -> SQLConnection { try SQLConnection(path.string, vfs: SealedVFS.name) }

  /// A digest of the database's contents; nil if the database is refused.
  func digest(_ files: [String: [UInt8]]) -> Int? {
    disk.load(files)
    return try? connect().digest()
  }

  func make(_ kind: TamperedFiles.Kind) throws -> TamperedFiles {
    disk.load([:])
    let connection = try connect()
    try connection.run("PRAGMA page_size = 4096")
    for id in 1...(kind == .spilledJournal ? 12 : 4) {
      try connection.run(
        "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, text TEXT);"
          + "INSERT INTO t VALUES (\(id), 'row \(id)' || hex(zeroblob(\(id * (kind == .database ? 220 : 150)))))"
      )
    }
    var allowed = [try connection.digest()]
    var files: [String: [UInt8]] = [:]
    switch kind {
    case .database: files = disk.contents
    case .log:
      try connection.run("PRAGMA journal_mode = WAL")
      for round in 0..<4 {
        try connection.run("UPDATE t SET text = text || '\(round)' WHERE id % 2 = \(round % 2)")
        allowed.append(try connection.digest())
      }
      files = disk.contents
    case .journal, .spilledJournal:
      disk.willRemove = { [disk] _ in files = disk.contents }
      if kind == .spilledJournal { try connection.run("PRAGMA cache_size = 1") }
      try connection.run(
        "BEGIN; UPDATE t SET text = text || '!'; DELETE FROM t WHERE id = 2; COMMIT")
      disk.willRemove = { _ in }
    }
    return TamperedFiles(kind: kind, path: path, files: files, allowed: Set(allowed))
  }
}
