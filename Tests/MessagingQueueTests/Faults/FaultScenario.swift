import FileRecording
import Foundation
import GRDB
import MessagingQueue
import VaultCrypto

/// Runs every operation of an engine on a disk that fails at one step.
///
/// After a failure the scenario repairs the disk and repeats the operation with the same engine.
/// The end must be as without a failure. At the first failure it also checks the files that a kill
/// would leave.
final class FaultScenario {
  /// The results of each step without a fault.
  struct BaselineRun {
    var steps: [(name: String, before: Int, after: Int)] = []
    var writeCount = 0
    var readCount = 0
    var view: [String] = []
  }

  /// How much of a step is one transaction.
  enum Extent {
    case one
    case several
  }

  struct Stuck: Error, CustomStringConvertible {
    let description: String
  }

  let disk: RecordedEngine
  let pool: DatabasePool
  let engine: MessagingEngine
  /// The codes that callers got.
  private(set) var codes: [EngineError.Code?] = []
  /// The codes and disk states that must not occur.
  private(set) var findings: [String] = []
  private(set) var rehearsal: BaselineRun
  private let isRehearsal: Bool
  /// One thread closes pools, one at a time.
  private let closing = DispatchQueue(label: "fault-play.closing")
  private var stepCount = 0

  /// - Parameters:
  ///   - start: the files to begin with.
  ///   - rehearsal: the run without a fault; nil to make that run.
  init(
    on start: RecordedEngine, fault: FileRecorder.Fault? = nil, rehearsal: BaselineRun? = nil
  ) async throws {
    disk = RecordedEngine(fault: fault)
    try start.copyFiles(to: disk)
    self.rehearsal = rehearsal ?? BaselineRun()
    isRehearsal = rehearsal == nil
    let (recorder, recorded) = (disk.recorder, disk)
    // LifeFaultTests covers a start that fails; this one is repeated after the disk is repaired.
    do {
      pool = try recorded.openPool(isRecorded: true)
    } catch {
      recorder.lift()
      pool = try recorded.openPool(isRecorded: true)
    }
    let secrets = CountingSource()
    let open = { [pool, closing, time = disk.time] in
      try MessagingEngine(
        pool: pool, time: time, random: secrets.source, isSecured: true,
        closePool: { try closing.sync { try pool.close() } })
    }
    do {
      engine = try open()
    } catch {
      codes.append((error as? EngineError)?.code)
      recorder.lift()
      engine = try open()
    }
  }

  /// Repeats one step until it succeeds, and checks the files after the first failure.
  ///
  /// - Parameter known: the result if a retry finds that the first attempt succeeded.
  func step<Result>(
    _ name: String, _ extent: Extent = .one, known: Result? = nil,
    _ body: () async throws -> Result
  ) async throws -> Result {
    let number = stepCount
    stepCount += 1
    let before = isRehearsal ? try disk.imageDigest() : 0
    var isUnknown = false
    for _ in 0..<3 {
      do {
        let result = try await body()
        if isRehearsal {
          rehearsal.steps.append((name, before, try disk.imageDigest()))
        }
        return result
      } catch {
        let code = Self.code(of: error)
        if code == .unknownLease, isUnknown, let known { return known }
        if codes.isEmpty { try look(number, extent, code) }
        codes.append(code)
        isUnknown = isUnknown || code == .outcomeUnknown
        if code == nil { findings.append("\(name): \(error)") }
        disk.recorder.lift()
      }
    }
    throw Stuck(description: "\(name) fails still: \(codes)")
  }

  /// Checks the files that a kill at the first failure would leave.
  private func look(_ number: Int, _ extent: Extent, _ code: EngineError.Code?) throws {
    guard extent == .one, number < rehearsal.steps.count else { return }
    let step = rehearsal.steps[number]
    let found = try disk.imageDigest()
    let isRight = found == step.before || code == .outcomeUnknown && found == step.after
    if !isRight {
      findings.append("\(step.name): told \(code?.description ?? "?"), but the files changed")
    }
  }

  func find(_ finding: String) {
    findings.append(finding)
  }

  /// Stops the engine, and compares the disk's contents after a restart of the machine with the run
  /// without a fault.
  func finish() async throws {
    do throws(EngineError) {
      try await engine.stop()
    } catch {
      codes.append(error.code)
    }
    // After a stop that timed out, the pool is still closed.
    try? closing.sync { try pool.close() }
    rehearsal.writeCount = disk.recorder.failableEventCount
    rehearsal.readCount = disk.recorder.readCount
    let view = try disk.view()
    if isRehearsal { rehearsal.view = view }
    for (found, expected) in zip(view, rehearsal.view) where found != expected {
      findings.append("found: \(found), expected: \(expected)")
    }
    if view.count != rehearsal.view.count { findings.append("found: \(view)") }
  }

  /// The caller's own transactions throw GRDB's errors.
  private static func code(of error: any Error) -> EngineError.Code? {
    switch error {
    case let error as EngineError: error.code
    case let error as DatabaseError where error.resultCode == .SQLITE_FULL: .diskFull
    case let error as DatabaseError where error.resultCode == .SQLITE_IOERR: .outcomeUnknown
    default: nil
    }
  }
}

/// Random bytes that are the same in every run.
private final class CountingSource: @unchecked Sendable {
  // Sendable: only the writer of one pool uses it.
  private var next: UInt64 = 0

  var source: RandomSource {
    RandomSource { [self] target in
      next += 1
      for index in target.indices { target[index] = UInt8(truncatingIfNeeded: next >> (index * 8)) }
    }
  }
}
