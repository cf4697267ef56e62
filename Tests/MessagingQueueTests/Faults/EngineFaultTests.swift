import FileRecording
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import SystemPackage
import TestSupport
import Testing

/// Every write, sync, truncation, removal and read of a working engine fails, once alone and once
/// as the first of many until an operation gets an error.
@Suite struct EngineFaultTests {
  @Test func `a failing disk loses and repeats no message, and the same engine continues`()
    async throws
  {
    let start = try Self.start()
    let first = try await FaultScenario(on: start)
    try await first.run()
    try await first.finish()
    #expect(first.codes.isEmpty && first.findings.isEmpty, "\(first.codes) \(first.findings)")
    let rehearsal = first.rehearsal
    let faults = Self.faults(rehearsal)
    var (hit, told, lost) = (0, 0, 0)
    for fault in faults {
      let scenario = try await FaultScenario(on: start, fault: fault, rehearsal: rehearsal)
      do {
        try await scenario.run()
        try await scenario.finish()
      } catch {
        scenario.find("\(error)")
      }
      let unexpected = scenario.codes.filter { !Self.allowed(fault).contains($0) }
      #expect(unexpected.isEmpty, "\(fault)")
      #expect(scenario.findings.isEmpty, "\(fault)")
      if scenario.disk.recorder.hasOccurred { hit += 1 }
      if !scenario.codes.isEmpty { told += 1 }
      if !scenario.findings.isEmpty { lost += 1 }
    }
    print(
      """
      engine faults: \(rehearsal.writeCount + rehearsal.readCount) interruption points, \
      \(rehearsal.steps.count) operations, \(faults.count) runs, \(told) told, lost: \(lost)
      """)
    #expect(hit == faults.count)
    #expect(rehearsal.steps.count == 22)
  }

  /// Each write and each third read, with the kinds of fault in turn.
  private static func faults(_ rehearsal: FaultScenario.BaselineRun) -> [FileRecorder.Fault] {
    var faults: [FileRecorder.Fault] = []
    for number in 0..<rehearsal.writeCount {
      let kinds: [FileRecorder.Fault] = [
        .failure(atEvent: number, .noSpace), .failure(atEvent: number, .ioError),
        .failures(fromEvent: number, .noSpace), .failures(fromEvent: number, .ioError),
        .failures(fromEvent: number, .readOnlyFileSystem),
      ]
      faults += Exhaustive.isRequested ? kinds : [kinds[number % 5]]
    }
    for number in 0..<rehearsal.readCount {
      let kinds: [FileRecorder.Fault] = [
        .readFailure(atRead: number, .ioError), .readFailures(fromRead: number, .ioError),
      ]
      faults += Exhaustive.isRequested ? kinds : number % 3 == 0 ? [kinds[number % 2]] : []
    }
    return faults
  }

  /// The allowed codes: a failing disk is never called damaged, and a full one is called full if
  /// that is known.
  private static func allowed(_ fault: FileRecorder.Fault) -> Set<EngineError.Code?> {
    switch fault {
    case .failure(_, .noSpace), .failures(_, .noSpace):
      [.diskFull, .inputOutput, .outcomeUnknown]
    default: [.inputOutput, .outcomeUnknown]
    }
  }

  /// A closed database with a table of the caller's.
  private static func start() throws -> RecordedEngine {
    let start = RecordedEngine()
    let pool = try start.openPool(isRecorded: false)
    _ = try TestQueue(pool: pool, time: start.time)
    try pool.write { try $0.execute(sql: "CREATE TABLE invoice (number INTEGER PRIMARY KEY)") }
    try pool.close()
    return start
  }
}
