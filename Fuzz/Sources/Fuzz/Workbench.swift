import CFuzzedSQLite
import Foundation
import SealedVFS
import SystemPackage
import VaultCrypto

/// A sealed database with its log or hot journal, which the fuzzer changes and opens repeatedly.
final class Workbench {
  let kind: Kind
  private let folder: FuzzFolder
  var path: String { folder.database }
  private let registration: KeyRegistration
  private var files: [String: [UInt8]] = [:]
  /// The database before the transaction of its journal.
  private var committed: [UInt8] = []
  /// The allowed results after an unauthentic change: the contents at one of the commits.
  private var allowed: Set<[String]> = []

  enum Kind: String {
    case database, log, journal
    var suffix: String { ["database": "", "log": "-wal", "journal": "-journal"][rawValue] ?? "" }
  }

  private static let question = "SELECT id || text FROM t ORDER BY id"

  init(_ kind: Kind) throws {
    self.kind = kind
    folder = try FuzzFolder()
    registration = try SealedVFS.register(
      key: SecretBytes(copying: [UInt8](repeating: 7, count: 32)), at: FilePath(folder.database))
    let connection = Connection(path, vfs: SealedVFS.name)
    connection.run(
      """
      PRAGMA synchronous = OFF; CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
      INSERT INTO t VALUES (1, 'one'), (2, hex(zeroblob(700))), (3, hex(zeroblob(1500)) || 'x');
      """)
    note(connection)
    committed = FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? []
    switch kind {
    case .database: break
    case .log:
      connection.run("PRAGMA journal_mode = WAL")
      for round in 0..<3 {
        connection.run("UPDATE t SET text = text || '\(round)'")
        note(connection)
      }
    case .journal:
      connection.run(
        "PRAGMA synchronous = FULL; PRAGMA cache_size = 1; BEGIN; UPDATE t SET text = text || 'y'")
    }
    for suffix in ["", "-wal", "-journal"] {
      files[suffix] = FileManager.default.contents(atPath: path + suffix).map { [UInt8]($0) }
    }
  }

  private func note(_ connection: Connection) {
    if let rows = connection.run(Self.question) { allowed.insert(rows) }
  }

  func remove() { folder.removeAll() }

  func run(_ input: UnsafeBufferPointer<UInt8>) {
    guard let edits = Edits(input) else { return }
    let isResealed = edits.mode & 1 == 1
    put(isResealed ? nil : edits, leavesJournal: !(isResealed && kind == .journal))
    switch kind {
    case _ where !isResealed: break
    case .journal: sealJournalAnew(edits)
    case .database, .log: sealAnew(edits)
    }
    let connection = Connection(path, vfs: SealedVFS.name)
    connection.run("PRAGMA cell_size_check = \(edits.mode >> 1 & 1)")
    let rows = connection.run(Self.question)
    if !isResealed, kind == .log, let rows { require(allowed.contains(rows), "a wrong row") }
    if !isResealed, kind == .database, let rows, (files[""]?.count ?? 0) > 0 {
      require(allowed.contains(rows) || rows.isEmpty, "a wrong row")
    }
    connection.run("PRAGMA integrity_check")
    connection.run("UPDATE t SET text = text || 'z'; DELETE FROM t WHERE id = 2; VACUUM")
    connection.run("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// Writes the files of the template, with one of them edited.
  private func put(_ edits: Edits?, leavesJournal: Bool) {
    for suffix in ["", "-wal", "-journal", "-shm"] {
      guard leavesJournal || suffix != "-journal", var bytes = files[suffix] else {
        unlink(path + suffix)
        continue
      }
      if suffix == "" && !leavesJournal { bytes = committed }
      if suffix == kind.suffix { edits?.apply(to: &bytes) }
      _ = FileManager.default.createFile(atPath: path + suffix, contents: Data(bytes))
    }
  }

  /// Edits the plaintext and has the VFS seal it, so that SQLite reads authentic but invalid data.
  private func sealAnew(_ edits: Edits) {
    let connection = Connection(path, vfs: SealedVFS.name)
    connection.run("SELECT * FROM t; BEGIN IMMEDIATE")
    guard let file = kind == .log ? connection.sibling : connection.file,
      let methods = file.pointee.pMethods?.pointee
    else { return }
    let start = kind == .log ? 32 : 0
    let parts = kind == .log ? [24, 4096] : [4096]
    var size: Int64 = 0
    _ = methods.xFileSize(file, &size)
    var bytes = [UInt8](repeating: 0, count: Int(size))
    let unit = parts.reduce(0, +)
    guard bytes.count >= start + unit else { return }
    bytes.withUnsafeMutableBytes { target in
      guard let memory = target.baseAddress else { return }
      for offset in stride(from: start, to: Int(size) - unit + 1, by: unit) {
        _ = methods.xRead(file, memory + offset, Int32(unit), Int64(offset))
      }
    }
    edits.apply(to: &bytes)
    bytes.withUnsafeBytes { source in
      guard let memory = source.baseAddress else { return }
      for offset in stride(from: start, to: source.count - unit + 1, by: unit) {
        var place = offset
        for part in parts {
          _ = methods.xWrite(file, memory + place, Int32(part), Int64(place))
          place += part
        }
      }
    }
    // As after a kill: the files are copied before the connection closes and cleans up.
    let kept = ["", "-wal"].map { FileManager.default.contents(atPath: path + $0) }
    connection.run("ROLLBACK")
    _ = consume connection
    for (suffix, contents) in zip(["", "-wal"], kept) {
      if let contents {
        _ = FileManager.default.createFile(atPath: path + suffix, contents: contents)
      }
    }
    unlink(path + "-shm")
  }
}
