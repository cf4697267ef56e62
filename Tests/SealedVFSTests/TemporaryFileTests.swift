import CSQLite
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import SealedVFS

/// Files without a name: sorters, statement journals, temporary tables, `VACUUM`'s copy.
@Suite struct TemporaryFileTests {
  private let place = TemporaryDatabase()
  private let recorder = FileRecorder()
  private static let blockByteCount = 4136

  @Test(arguments: 1...4)
  func `any bytes at any offset are read back as from an ordinary file`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var expected: [UInt8] = []
    let file = try TemporaryHandle()
    // Sorters write pages, and journals write 4 and 4096 bytes in turn; some offsets leave gaps.
    let sizes = [1, 4, 8, 100, 512, 1024, 4095, 4096, 4097, 8192, 12_000, 65_536]
    for _ in 0..<600 {
      let byteCount = sizes.randomElement(using: &random) ?? 1
      let isAligned = Bool.random(using: &random)
      var offset = Int.random(in: 0...max(1, expected.count + 9000), using: &random)
      if isAligned { offset -= offset % 4096 }
      switch Int.random(in: 0..<12, using: &random) {
      case 0:
        let end = Int.random(in: 0...expected.count, using: &random)
        #expect(try file.truncate(to: end) == SQLITE_OK)
        expected.removeLast(expected.count - end)
      case 1...6 where offset + byteCount < 1 << 20:
        let bytes = (0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
        #expect(try file.write(bytes, at: offset) == SQLITE_OK)
        let missing = offset + byteCount - expected.count
        if missing > 0 { expected += [UInt8](repeating: 0, count: missing) }
        expected.replaceSubrange(offset..<offset + byteCount, with: bytes)
      default:
        let found = try file.read(byteCount, at: offset)
        let present = Array(expected.dropFirst(offset).prefix(byteCount))
        let isSame =
          found.bytes == present + [UInt8](repeating: 0, count: byteCount - present.count)
        #expect(isSame, "\(byteCount) bytes at \(offset) of \(expected.count)")
        let isShort = present.count < byteCount
        #expect(found.code == (isShort ? SQLITE_IOERR | 2 << 8 : SQLITE_OK))
      }
      #expect(try file.byteCount == expected.count)
    }
  }

  enum Damage: CaseIterable {
    case flippedBit, nonce, tag, zeros, otherBlock, missing
  }

  @Test(arguments: Damage.allCases)
  func `a changed block of a temporary file is an error, never other bytes`(damage: Damage) throws {
    let path = place.directory.appending("temporary")
    let file = try TemporaryHandle(path.string)
    for block in 0..<4 {
      let bytes = [UInt8](repeating: UInt8(0x41 + block), count: 4096)
      #expect(try file.write(bytes, at: block * 4096) == SQLITE_OK)
    }
    try place.overwrite(path) { bytes in
      #expect(bytes.count == 4 * Self.blockByteCount)
      #expect(!bytes.contains(text: "AAAA"))
      let second = Self.blockByteCount
      switch damage {
      case .flippedBit: bytes[second + 17] ^= 1
      case .nonce: bytes[second + 4096] ^= 1
      case .tag: bytes[second + 4135] ^= 1
      case .zeros:
        bytes.replaceSubrange(
          second..<2 * second, with: [UInt8](repeating: 0, count: Self.blockByteCount))
      case .otherBlock: bytes.replaceSubrange(second..<2 * second, with: bytes[0..<second])
      case .missing: bytes.removeSubrange(second...)
      }
    }
    #expect(try file.read(4096, at: 0).bytes == [UInt8](repeating: 0x41, count: 4096))
    for (byteCount, offset) in [(4096, 4096), (10, 5000), (8192, 4096)] {
      let found = try file.read(byteCount, at: offset)
      #expect(found.code == SQLITE_IOERR | 32 << 8)
      #expect(!found.bytes.contains(0x41) && !found.bytes.contains(0x42))
    }
  }

  /// Statements that make SQLite open files without a name, with rows that contain "canary".
  private static let workload = """
    PRAGMA temp_store = FILE; PRAGMA cache_size = 10; PRAGMA temp.cache_size = 10;
    CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT UNIQUE, tail TEXT);
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
    INSERT INTO t SELECT i, 'canary ' || ((i * 7919) % 3001), hex(randomblob(100)) FROM n;
    UPDATE t SET text = text || ' again';
    COMMIT;
    CREATE TEMP TABLE canary_table AS SELECT * FROM t ORDER BY tail;
    CREATE INDEX temp.by_tail ON canary_table (tail);
    BEGIN; UPDATE canary_table SET tail = 'canary ' || tail; ROLLBACK;
    UPDATE canary_table SET text = text || ' once more';
    CREATE INDEX by_tail ON t (tail, text);
    SELECT count(*) FROM (SELECT DISTINCT tail, text FROM canary_table ORDER BY text DESC);
    VACUUM
    """

  private func writes(_ events: [FileEvent], unnamed: Bool) -> [[UInt8]] {
    events.compactMap { event in
      guard case .write(let path, _, let bytes) = event,
        (path == RecordingVFS.unnamed) == unnamed
      else { return nil }
      return bytes
    }
  }

  /// A sealed VFS over a recording one, which then sees unnamed files, too.
  private func sealedVFS(_ recorder: FileRecorder) throws -> (sealed: String, recording: String) {
    try SealedVFS.install()
    let recording = RecordingVFS(recorder).name
    let base = try #require(sqlite3_vfs_find(recording))
    let vfs = VFSCallbacks.makeVFS(named: "sealed-\(recording)", over: base)
    #expect(sqlite3_vfs_register(vfs, 0) == SQLITE_OK)
    return ("sealed-\(recording)", recording)
  }

  /// Registers the key over the recording VFS, and opens the database.
  private func connect(
    _ place: TemporaryDatabase, _ recorder: FileRecorder
  ) throws -> SQLConnection {
    let vfs = try sealedVFS(recorder)
    try place.register(over: vfs.recording)
    return try SQLConnection(place.database.string, vfs: vfs.sealed)
  }

  @Test func `sorted, temporary and vacuumed rows never reach the disk as plaintext`() throws {
    let connection = try connect(place, recorder)
    try connection.run(Self.workload)
    // SQLite undoes a statement that fails at its last row from the statement journal.
    try connection.run("BEGIN; PRAGMA cache_size = 10")
    #expect(throws: SQLFailure.self) {
      try connection.run(
        "UPDATE t SET text = CASE id WHEN 3000 THEN 'canary 1917 again?' ELSE text || '?' END")
    }
    try connection.run("COMMIT")
    #expect(try connection.rowCount == "3000")
    #expect(try connection.first("SELECT count(*) FROM t WHERE text LIKE '%?'") == "0")
    #expect(try connection.first("SELECT count(*) FROM canary_table") == "3000")
    #expect(try connection.integrity == "ok")
    let unnamed = writes(recorder.events, unnamed: true)
    #expect(unnamed.count > 500)
    #expect(unnamed.allSatisfy { $0.count == Self.blockByteCount })
    let all = unnamed + writes(recorder.events, unnamed: false)
    #expect(!all.contains { $0.contains(text: "canary") || $0.contains(text: "CREATE") })
    #expect(Set(unnamed.map { Array($0[4096..<4120]) }).count == unnamed.count)
  }

  @Test func `the same work on a plain file writes its rows as plaintext`() throws {
    let connection = try SQLConnection(place.database.string, vfs: RecordingVFS(recorder).name)
    try connection.run(Self.workload)
    #expect(writes(recorder.events, unnamed: true).contains { $0.contains(text: "canary") })
  }

  @Test func `temporary files of a plain database are sealed, too`() throws {
    let connection = try SQLConnection(place.database.string, vfs: sealedVFS(recorder).sealed)
    try connection.run("PRAGMA page_size = 1024; \(Self.workload)")
    #expect(try connection.first("PRAGMA page_size") == "1024")
    #expect(try connection.first("SELECT count(*) FROM canary_table") == "3000")
    #expect(try connection.integrity == "ok")
    let unnamed = writes(recorder.events, unnamed: true)
    #expect(unnamed.count > 200)
    #expect(!unnamed.contains { $0.contains(text: "canary") })
  }

  @Test func `a sort by several threads returns the rows in order`() throws {
    let connection = try place.connect()
    try connection.run("PRAGMA threads = 4; PRAGMA cache_size = 10")
    let rows = try connection.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)
      SELECT printf('%06d', (i * 7919) % 60000) || hex(zeroblob(40)) FROM n ORDER BY 1
      """)
    let isSorted = rows.map { $0.prefix(6) } == (0..<60_000).map { String(format: "%06d", $0)[...] }
    #expect(isSorted)
  }

  @Test func `a database without a name is sealed`() throws {
    let connection = try SQLConnection("", vfs: sealedVFS(recorder).sealed)
    try connection.run("PRAGMA cache_size = 5")
    try connection.fill(2000)
    #expect(try connection.rowCount == "2000")
    #expect(try connection.integrity == "ok")
    let unnamed = writes(recorder.events, unnamed: true)
    #expect(unnamed.count > 50)
    #expect(!unnamed.contains { $0.contains(text: "canary") })
  }

  @Test func `a full disk under a temporary file is reported as SQLITE_FULL`() throws {
    let place = try TemporaryDatabase.made(rowCount: 3000)
    let recorder = FileRecorder(fault: .failure(atEvent: 6, .noSpace))
    let connection = try connect(place, recorder)
    try connection.run("PRAGMA cache_size = 10; PRAGMA temp.cache_size = 10")
    let failure = #expect(throws: SQLFailure.self) {
      try connection.run("CREATE TEMP TABLE u AS SELECT * FROM t ORDER BY text")
    }
    #expect(failure?.code == SQLITE_FULL)
    #expect(try connection.rowCount == "3000")
  }
}
