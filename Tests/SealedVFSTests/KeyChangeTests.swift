import FaultVFS
import FileLayer
import FileRecording
import Foundation
import Glibc
import SealedVFS
import SystemPackage
import Testing
import VaultCrypto

@testable import SealedVFS

@Suite struct KeyChangeTests {
  /// The rows and the journal mode under a key; also checks every page.
  private func state(
    _ place: TemporaryDatabase, _ keyBytes: [UInt8] = TemporaryDatabase.otherKeyBytes
  ) throws -> String {
    try place.withConnection(keyBytes) { connection in
      #expect(try connection.integrity == "ok")
      return "\(try connection.rowCount ?? "") \(try connection.first("PRAGMA journal_mode") ?? "")"
    }
  }

  @Test func `a key change keeps rows, file id and journal mode, and only the new key opens`()
    throws
  {
    for mode in ["WAL", "DELETE"] {
      let place = try TemporaryDatabase.made(mode: mode)
      let old = try place.header()
      try place.changeKey()
      let new = try place.header()
      #expect(old.fileID == new.fileID)
      let keys = [TemporaryDatabase.keyBytes, TemporaryDatabase.otherKeyBytes]
      #expect(try keys.map { try new.matches(key: TemporaryDatabase.key($0)) } == [false, true])
      #expect(place.fileNames == ["test.db"])
      place.expectFault(.wrongKey) { try place.connect() }
      #expect(try state(place) == "300 \(mode.lowercased())")
    }
  }

  @Test(arguments: [("log-not-checkpointed", "90 wal"), ("hot-journal", "150 delete")])
  func `a key change includes the log or journal that a killed process left`(
    _ fixture: String, _ expected: String
  ) throws {
    let place = try #require(DatabaseFixture.positives.first { $0.name == fixture }).place()
    try place.changeKey()
    #expect(place.fileNames == ["test.db"])
    #expect(try state(place) == expected)
  }

  @Test func `a key change is refused while another connection is open, and changes nothing`()
    throws
  {
    for mode in ["WAL", "DELETE"] {
      let (place, other) = try TemporaryDatabase.reopened(mode: mode)
      // In rollback mode an idle connection holds no lock, and finds the file moved afterwards.
      try other.run(mode == "WAL" ? "SELECT count(*) FROM t" : "BEGIN; SELECT count(*) FROM t")
      let failure = #expect(throws: SealedDatabaseError.self) { try place.changeKey() }
      #expect(failure?.code == .busy)
      #expect(try other.first("SELECT count(*) FROM t") == "300")
      other.close()
      #expect(try state(place, TemporaryDatabase.keyBytes) == "300 \(mode.lowercased())")
    }
  }

  @Test func `a key change waits for other connections to close`() async throws {
    let place = try TemporaryDatabase.made(mode: "WAL")
    let isOpen = DispatchSemaphore(value: 0)
    let path = place.database.string
    try place.register()
    Thread {
      let other = try? SQLConnection(path)
      _ = try? other?.run("SELECT count(*) FROM t")
      isOpen.signal()
      // Nothing shows that the key change waits.
      Thread.sleep(forTimeInterval: 0.2)
      other?.close()
    }.start()
    isOpen.wait()
    try place.changeKey(busyTimeout: .seconds(20))
    #expect(try state(place) == "300 wal")
  }

  @Test func `a key change of a read-only file or directory is refused and changes nothing`() throws
  {
    for (isDirectory, permissions) in [(true, 0o555), (false, 0o444)] {
      let place = try #require(
        DatabaseFixture.positives.first { $0.name == "log-not-checkpointed" }
      ).place()
      let before = try place.contents()
      let target = (isDirectory ? place.directory : place.database).string
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o755], ofItemAtPath: place.directory.string)
      try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: target)
      let failure = #expect(throws: SealedDatabaseError.self) {
        try FileUser.withoutPrivileges { try place.changeKey() }
      }
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: target)
      #expect(failure?.code == .readOnly, "\(failure?.description ?? "")")
      #expect(try place.changes(since: before).isEmpty)
    }
  }

  @Test func `a key change to the same key is refused and changes nothing`() throws {
    let place = try TemporaryDatabase.made(mode: "WAL")
    let before = try place.contents()
    let failure = #expect(throws: SealedDatabaseError.self) {
      try SealedVFS.reencrypt(
        place.database, from: TemporaryDatabase.key(), to: TemporaryDatabase.key())
    }
    #expect(failure?.code == .sameKey)
    #expect(try place.changes(since: before).isEmpty)
    // A repeated call is not an error: the caller might not know that the first one succeeded.
    try place.changeKey()
    try place.changeKey()
    #expect(try state(place) == "300 wal")
  }

  @Test func `a damaged page stops a key change, and the database is not changed`() throws {
    let place = try TemporaryDatabase.made(mode: "WAL")
    try place.change(place.database) { $0[5 * 4096 + 77] ^= 1 }
    let before = try place.contents()
    let failure = #expect(throws: SealedDatabaseError.self) { try place.changeKey() }
    #expect(failure?.code == .damagedPage)
    #expect(failure?.pageNumber == 6)
    #expect(try place.changes(since: before).isEmpty)
  }

  @Test func `a key change refuses a truncated file, and drops bytes after the database`() throws {
    let place = try TemporaryDatabase.made(mode: "WAL")
    let whole = try place.bytes(place.database)
    try place.change(place.database) { $0.removeLast(4096) }
    let failure = #expect(throws: SealedDatabaseError.self) { try place.changeKey() }
    #expect(failure?.code == .truncated)
    try place.write(whole + [UInt8](repeating: 7, count: 5000), to: place.database)
    try place.changeKey()
    #expect(try place.bytes(place.database).count == whole.count)
    #expect(try state(place) == "300 wal")
  }

  @Test func `a key change's progress counts every page`() throws {
    let place = try TemporaryDatabase.made(rowCount: 12_000)
    let pageCount = try place.bytes(place.database).count / 4096
    #expect(pageCount > 600)
    var seen: [PageProgress] = []
    try place.changeKey { seen.append($0) }
    #expect(seen.count == (pageCount + 255) / 256)
    #expect(seen.allSatisfy { $0.pageCount == pageCount })
    #expect(seen.map(\.completedPageCount) == seen.map(\.completedPageCount).sorted())
    #expect(seen.last?.completedPageCount == pageCount)
    #expect(try state(place) == "12000 delete")
  }

  @Test func `releasing the old file after a key change keeps the new file's log`() throws {
    let place = try TemporaryDatabase.made(mode: "WAL")
    var exclusive: ExclusiveConnection? = try ExclusiveConnection(
      to: place.database, key: TemporaryDatabase.key())
    try exclusive?.reencrypt(to: TemporaryDatabase.key(TemporaryDatabase.otherKeyBytes))
    try place.withConnection(TemporaryDatabase.otherKeyBytes) { connection in
      try connection.fill(10, from: 1000)
      #expect(place.exists(place.log))
      exclusive = nil
      #expect(place.exists(place.log))
      let copy = try place.afterKill()
      #expect(try state(copy) == "310 wal")
      try connection.fill(10, from: 2000)
    }
    #expect(try state(place) == "320 wal")
  }

  @Test func `a full disk during a key change leaves one key, all rows and the journal mode`()
    throws
  {
    let origin = try TemporaryDatabase.made(mode: "WAL")
    for event in 0... {
      let place = try origin.afterKill()
      let recorder = FileRecorder(fault: .failure(atEvent: event, .noSpace))
      let vfs = RecordingVFS(recorder)
      var code: SealedDatabaseError.Code?
      do throws(SealedDatabaseError) {
        try SealedVFS.reencrypt(
          place.database, from: TemporaryDatabase.key(),
          to: TemporaryDatabase.key(TemporaryDatabase.otherKeyBytes), over: vfs.name,
          fileSystem: RecordingFileSystem(recorder: recorder))
      } catch {
        code = error.code
      }
      let otherKey = TemporaryDatabase.key(TemporaryDatabase.otherKeyBytes)
      let isChanged = try place.header().matches(key: otherKey)
      let keyBytes = isChanged ? TemporaryDatabase.otherKeyBytes : TemporaryDatabase.keyBytes
      #expect(try state(place, keyBytes) == "300 wal", "full at \(event)")
      if recorder.failableEventCount <= event {
        #expect(event > 5 && code == nil)
        break
      }
      // Only a write can report a full disk.
      #expect([nil, .diskFull, .inputOutput].contains(code), "full at \(event)")
    }
  }
}

/// Drops root's privileges for files in one thread, so that tests can check missing permissions.
private enum FileUser {
  // setfsuid(2), which the module of the C library lacks.
  private typealias SetFileUser = @convention(c) (uid_t) -> Int32

  /// Runs a body whose files are opened as the user 65534; only the calling thread changes.
  static func withoutPrivileges<R>(_ body: () throws -> R) throws -> R {
    guard geteuid() == 0, let symbol = dlsym(nil, "setfsuid") else { return try body() }
    let setFileUser = unsafeBitCast(symbol, to: SetFileUser.self)
    _ = setFileUser(65534)
    defer { _ = setFileUser(0) }
    return try body()
  }
}
