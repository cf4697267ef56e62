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
/// `DATAVAULT_CRASH_STATES` sets how many states of each workload are tried; 6 by default.
@Suite struct CrashEnumerationTests {
  private static let stateCount =
    ProcessInfo.processInfo.environment["DATAVAULT_CRASH_STATES"].flatMap(Int.init) ?? 6

  private static let cuts: [PowerCut] = [
    .nothing, .everythingUnsynchronized, .some(seed: 1), .some(seed: 2),
  ]

  @Test(arguments: CrashWorkload.allCases, cuts)
  func `after a crash at any step every acknowledged row is there`(
    workload: CrashWorkload, cut: PowerCut
  ) throws {
    let place = try Place()
    let record = try workload.record(place)
    let events = record.events
    var counts = Array(
      stride(from: 0, to: events.count, by: max(1, events.count / Self.stateCount)))
    counts.append(events.count)
    for count in counts {
      let acknowledged =
        events.prefix(count).reversed().lazy.compactMap { event -> Int? in
          if case .mark(let note) = event { Int(note) } else { nil }
        }.first
      // In the same directory: super-journals and journals name each other by full path.
      for name in place.fileNames {
        try FileManager.default.removeItem(atPath: place.directory.appending(name).string)
      }
      for (path, bytes) in cut.files(Array(events.prefix(count)), initial: record.initial) {
        try place.write(bytes, to: path)
      }
      let comment: Comment = "\(workload), \(cut.testDescription), \(count) of \(events.count)"
      if workload == .keyChange {
        let (rows, isChanged) = try rowsUnderEitherKey(place, comment)
        #expect(rows == 40, comment)
        #expect(isChanged || acknowledged == nil, comment)
      } else {
        let rows = try rows(place, Place.keyBytes, comment)
        let known = acknowledged ?? 0
        #expect(rows == known || rows == known + workload.size, comment)
        if workload == .twoDatabases {
          #expect(try secondRows(place, comment) == rows, comment)
        }
      }
    }
  }

  private func rowsUnderEitherKey(
    _ place: Place, _ comment: Comment
  ) throws -> (rows: Int, isChanged: Bool) {
    guard case .sealed(let header) = try SealedVFS.inspect(place.database) else {
      return (-1, false)
    }
    let isChanged = header.matches(key: Place.key(Place.otherKeyBytes))
    return (
      try rows(place, isChanged ? Place.otherKeyBytes : Place.keyBytes, comment), isChanged
    )
  }

  private func secondRows(_ place: Place, _ comment: Comment) throws -> Int {
    let registration = try SealedVFS.register(key: Place.key(), at: place.second)
    return try withExtendedLifetime(registration) {
      let connection = try Connection(place.second.string)
      #expect(try connection.integrity == "ok", comment)
      let hasTable = try connection.first("SELECT count(*) FROM sqlite_master") != "0"
      return hasTable ? Int(try connection.first("SELECT count(*) FROM u") ?? "") ?? -1 : 0
    }
  }

  /// Opens what is left and counts rows, all pages checked.
  private func rows(_ place: Place, _ keyBytes: [UInt8], _ comment: Comment) throws -> Int {
    let registration = try place.register(keyBytes)
    return withExtendedLifetime(registration) {
      do {
        let connection = try place.open()
        #expect(try connection.integrity == "ok", comment)
        let hasTable = try connection.first("SELECT count(*) FROM sqlite_master") != "0"
        return hasTable ? Int(try connection.rowCount ?? "") ?? -1 : 0
      } catch {
        Issue.record("\(comment): \(error), \(registration.fault.map(\.description) ?? "no fault")")
        return -1
      }
    }
  }

  @Test func `a full disk at any step is an error, and the next transaction works`() throws {
    let place = try Place()
    try place.makeDatabase(rowCount: 50, mode: "WAL")
    let image = try place.contents()
    for event in 0... {
      let copy = try Place()
      for (name, bytes) in image { try copy.write(bytes, to: copy.directory.appending(name)) }
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
