import CSQLite
import FaultVFS
import FileLayer
import Foundation
import SealedVFS
import SystemPackage
import Testing
import VaultCrypto

/// Ends the world between any two steps of a workload, with and without the loss of all that was
/// not synchronized, and opens what is left.
///
/// `DATAVAULT_CRASH_STATES` sets how many states of each workload are tried; 12 by default.
@Suite struct CrashEnumerationTests {
  /// What a workload has acknowledged at a mark, and what it may have done by the next one.
  enum Workload: String, CaseIterable, Sendable {
    case logCommits, journalCommits, spills, checkpoints, keyChange
  }

  private static let stateCount =
    ProcessInfo.processInfo.environment["DATAVAULT_CRASH_STATES"].flatMap(Int.init) ?? 12

  /// Runs a workload once and returns what it did to the disk, with a mark after each commit.
  private func record(_ workload: Workload, _ place: Place) throws -> (
    events: [FileEvent], initial: [FilePath: [UInt8]]
  ) {
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder)
    var initial: [FilePath: [UInt8]] = [:]
    if workload == .keyChange {
      try place.makeDatabase(rowCount: 40, mode: "WAL")
      for (name, bytes) in try place.contents() {
        initial[place.directory.appending(name)] = bytes
      }
    }
    let registration = try place.register(over: vfs.name)
    try withExtendedLifetime(registration) {
      if workload == .keyChange {
        try SealedVFS.reencrypt(
          place.database, from: Place.key(), to: Place.key(Place.otherKeyBytes), over: vfs.name,
          fileSystem: RecordingFileSystem(recorder: recorder))
        recorder.mark("40")
      } else {
        try run(workload, try place.open(), recorder)
      }
    }
    return (recorder.events, initial)
  }

  private func run(
    _ workload: Workload, _ connection: Connection, _ recorder: FileRecorder
  ) throws {
    // Without a log, FULL leaves a commit's last step, the journal's removal, to the system: EXTRA.
    try connection.run(
      workload == .journalCommits
        ? "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA"
        : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    if workload == .checkpoints { try connection.run("PRAGMA wal_autocheckpoint = 8") }
    if workload == .spills { try connection.run("PRAGMA cache_size = 5") }
    let size = workload == .spills ? 120 : 6
    for round in 0..<(workload == .spills ? 3 : 8) {
      try connection.run("BEGIN")
      try connection.fill(size, from: round * size + 1)
      if workload == .spills { try connection.run("UPDATE t SET text = text || '.'") }
      try connection.run("COMMIT")
      recorder.mark("\((round + 1) * size)")
    }
  }

  @Test(arguments: Workload.allCases, [DiskReplay.Loss.nothing, .everythingUnsynchronized])
  func `after a crash at any step every acknowledged row is there`(
    workload: Workload, loss: DiskReplay.Loss
  ) throws {
    let place = try Place()
    let (events, initial) = try record(workload, place)
    let size = workload == .spills ? 120 : 6
    let step = max(1, events.count / Self.stateCount)
    var tried = 0
    for count in stride(from: 0, through: events.count, by: step) {
      let acknowledged =
        events.prefix(count).reversed().lazy.compactMap { event -> Int? in
          if case .mark(let note) = event { Int(note) } else { nil }
        }.first ?? (workload == .keyChange ? 40 : 0)
      let state = try Place()
      let files = DiskReplay(events.prefix(count), initialFiles: initial).files(after: loss)
      for (path, bytes) in files {
        try state.write(bytes, to: state.directory.appending(path.lastComponent?.string ?? ""))
      }
      let rows = try survivors(state, "\(workload) \(count)/\(events.count)")
      if workload == .keyChange {
        #expect(rows == 40, "state \(count) of \(events.count)")
      } else {
        #expect(
          rows == acknowledged || rows == acknowledged + size,
          "state \(count) of \(events.count): \(rows) rows, \(acknowledged) acknowledged")
      }
      tried += 1
    }
    #expect(tried >= min(Self.stateCount, events.count))
  }

  /// Opens what is left with whichever key its header fits, and counts rows that are whole.
  private func survivors(_ state: Place, _ name: String) throws -> Int {
    var keyBytes = Place.keyBytes
    if case .sealed(let header) = try SealedVFS.inspect(state.database),
      header.matches(key: Place.key(Place.otherKeyBytes))
    {
      keyBytes = Place.otherKeyBytes
    }
    let registration = try state.register(keyBytes)
    return withExtendedLifetime(registration) {
      do {
        let connection = try state.open()
        #expect(try connection.integrity == "ok", "\(name)")
        let hasTable = try connection.first("SELECT count(*) FROM sqlite_master") != "0"
        return hasTable ? Int(try connection.rowCount ?? "") ?? -1 : 0
      } catch {
        Issue.record("\(name): \(error), \(registration.fault.map(\.description) ?? "no fault")")
        return -1
      }
    }
  }

  @Test func `a full disk at any step is an error, and the next transaction works`() throws {
    let place = try Place()
    try place.makeDatabase(rowCount: 50, mode: "WAL")
    for event in 0... {
      let copy = try place.afterKill()
      let recorder = FileRecorder(fault: .failure(atEvent: event, .noSpace))
      let registration = try copy.register(over: RecordingVFS(recorder).name)
      let connection = try copy.open()
      do {
        try connection.fill(20, from: 100)
      } catch let failure as SQLiteFailure {
        #expect([SQLITE_FULL, SQLITE_IOERR].contains(failure.primaryCode), "event \(event)")
      }
      if recorder.failableEventCount <= event { break }  // the disk never was full
      if sqlite3_get_autocommit(connection.pointer) == 0 {
        try connection.run("ROLLBACK")
      }
      try connection.fill(20, from: 1000)
      #expect(try connection.integrity == "ok")
      let count = try #require(Int(try connection.rowCount ?? ""))
      #expect(count == 70 || count == 90)
      withExtendedLifetime(registration) {}
    }
  }
}
