import FileLayer
import Foundation
import GRDB
import MessagingQueue
import SystemPackage
import Testing

/// Every write, sync, truncation, removal and read of a working engine, each failing once, and each the
/// first of many until somebody has been told.
@Suite struct EngineFaultTests {
  /// `DATAVAULT_FAULTS=all` has every kind of fault at every point, not one in turn.
  private static let isExhaustive =
    ProcessInfo.processInfo.environment["DATAVAULT_FAULTS"] == "all"

  @Test func `no failing disk loses or doubles anything, and the same engine goes on`() async throws
  {
    let start = try Self.start()
    defer { start.remove() }
    let first = try await FaultScenario(on: start)
    try await first.run()
    try await first.finish()
    #expect(first.codes.isEmpty && first.findings.isEmpty, "\(first.codes) \(first.findings)")
    let rehearsal = first.rehearsal
    let faults = Self.faults(rehearsal)
    var (struck, told, lost) = (0, 0, 0)
    for fault in faults {
      let play = try await FaultScenario(on: start, fault: fault, rehearsal: rehearsal)
      do {
        try await play.run()
        try await play.finish()
      } catch {
        play.find("\(error)")
      }
      let strange = play.codes.filter { !Self.allowed(fault).contains($0) }
      #expect(strange.isEmpty, "\(fault)")
      #expect(play.findings.isEmpty, "\(fault)")
      if play.disk.recorder.hasOccurred { struck += 1 }
      if !play.codes.isEmpty { told += 1 }
      if !play.findings.isEmpty { lost += 1 }
    }
    print(
      """
      engine faults: \(rehearsal.writeCount + rehearsal.readCount) interruption points, \
      \(rehearsal.steps.count) operations, \(faults.count) plays, \(told) told, lost: \(lost)
      """)
    #expect(struck == faults.count)
    #expect(rehearsal.steps.count == 22)
  }

  /// Each write and each third read, by each kind in turn.
  private static func faults(_ rehearsal: FaultScenario.BaselineRun) -> [FileRecorder.Fault] {
    var faults: [FileRecorder.Fault] = []
    for number in 0..<rehearsal.writeCount {
      let kinds: [FileRecorder.Fault] = [
        .failure(atEvent: number, .noSpace), .failure(atEvent: number, .ioError),
        .failures(fromEvent: number, .noSpace), .failures(fromEvent: number, .ioError),
        .failures(fromEvent: number, .readOnlyFileSystem),
      ]
      faults += isExhaustive ? kinds : [kinds[number % 5]]
    }
    for number in 0..<rehearsal.readCount {
      let kinds: [FileRecorder.Fault] = [
        .readFailure(atRead: number, .ioError), .readFailures(fromRead: number, .ioError),
      ]
      faults += isExhaustive ? kinds : number % 3 == 0 ? [kinds[number % 2]] : []
    }
    return faults
  }

  /// A disk that fails is never called damaged, and a full one is called full where it is known to be.
  private static func allowed(_ fault: FileRecorder.Fault) -> Set<EngineError.Code?> {
    switch fault {
    case .failure(_, .noSpace), .failures(_, .noSpace):
      [.diskFull, .inputOutput, .outcomeUnknown]
    default: [.inputOutput, .outcomeUnknown]
    }
  }

  /// A database with a table of the caller's, closed.
  private static func start() throws -> RecordedEngine {
    let start = try RecordedEngine()
    let pool = try start.openPool(isRecorded: false)
    _ = try EngineDatabase(pool: pool, time: start.time)
    try pool.write { try $0.execute(sql: "CREATE TABLE invoice (number INTEGER PRIMARY KEY)") }
    try pool.close()
    return start
  }
}
