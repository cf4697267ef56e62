import FaultVFS
import FileLayer
import Foundation
import GRDB
import MessagingQueue
import SystemPackage
import VaultCrypto

/// All that an engine does, on a disk that fails somewhere.
///
/// Whoever is told of it has the disk mended and does the same again, with the same engine: then all
/// must end as if nothing had happened. At the first failure the files are also looked at as a kill in
/// that moment would leave them.
final class FaultScenario {
  /// What each step finds and leaves when nothing fails.
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
  /// What callers were told.
  private(set) var codes: [EngineError.Code?] = []
  /// What no caller may be told, and what no disk may show.
  private(set) var findings: [String] = []
  private(set) var rehearsal: BaselineRun
  private let isRehearsal: Bool
  /// A pool is closed by one at a time.
  private let closing = DispatchQueue(label: "fault-play.closing")
  private var stepCount = 0

  /// - Parameters:
  ///   - start: the files it begins with.
  ///   - rehearsal: nil to be the first, without a fault.
  init(
    on start: RecordedEngine, fault: FileRecorder.Fault? = nil, rehearsal: BaselineRun? = nil
  ) async throws {
    disk = try RecordedEngine(fault: fault)
    try start.copyFiles(to: disk)
    self.rehearsal = rehearsal ?? BaselineRun()
    isRehearsal = rehearsal == nil
    let (recorder, recorded) = (disk.recorder, disk)
    // A start that fails is LifeFaultTests' business; here it is done again once the disk works.
    do {
      pool = try recorded.openPool(isRecorded: true)
    } catch {
      recorder.lift()
      pool = try recorded.openPool(isRecorded: true)
    }
    let secrets = CountingSource()
    let open = { [pool, closing, time = disk.time] in
      try await MessagingEngine(
        pool: pool, time: time, random: secrets.source, isSecured: true,
        closePool: { try closing.sync { try pool.close() } })
    }
    do {
      engine = try await open()
    } catch {
      codes.append((error as? EngineError)?.code)
      recorder.lift()
      engine = try await open()
    }
  }

  deinit { disk.remove() }

  /// Does one thing until it is done, and looks at what a failure has left.
  ///
  /// - Parameter known: what it comes to when a retry finds that it was done the first time.
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

  /// What a kill at the first failure would leave.
  private func look(_ number: Int, _ extent: Extent, _ code: EngineError.Code?) throws {
    guard extent == .one, number < rehearsal.steps.count else { return }
    let step = rehearsal.steps[number]
    let found = try disk.imageDigest()
    let isRight = found == step.before || code == .outcomeUnknown && found == step.after
    if !isRight {
      findings.append("\(step.name): told \(code?.description ?? "?"), and something was changed")
    }
  }

  func find(_ finding: String) {
    findings.append(finding)
  }

  /// Ends the engine; what the disk holds then, seen without a fault after a restart of the machine.
  func finish() async throws {
    do throws(EngineError) {
      try await engine.stop()
    } catch {
      codes.append(error.code)
    }
    // A stop whose time was over still closes it.
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

/// Bytes that are the same in every play.
private final class CountingSource: @unchecked Sendable {
  // Sendable: only the writer of one pool draws from it.
  private var next: UInt64 = 0

  var source: RandomSource {
    RandomSource { [self] target in
      next += 1
      for index in target.indices { target[index] = UInt8(truncatingIfNeeded: next >> (index * 8)) }
    }
  }
}
