import FileRecording
import GRDB
import SystemPackage
import TestSupport
import Testing

@testable import MessagingQueue

/// The errors of callers that share a commit on a failing disk.
@Suite struct CommitFaultTests {
  private static let texts = ["a", "b", "c"]

  @Test(arguments: [Errno.ioError, .noSpace])
  func `an error that reports no change is true at every failing step`(
    errno: Errno
  ) async throws {
    let rehearsal = RecordedEngine()
    #expect(try await Self.publish(on: rehearsal) == [nil, nil, nil])
    #expect(try rehearsal.texts() == Self.texts)
    var seen: Set<EngineError.Code> = []
    for number in 0..<rehearsal.recorder.failableEventCount {
      let engine = RecordedEngine(fault: .failure(atEvent: number, errno))
      guard let codes = try await Self.publish(on: engine) else { continue }
      let texts = try engine.texts()
      for (text, code) in zip(Self.texts, codes) {
        switch code {
        case nil: #expect(texts.contains(text), "\(number)")
        case .outcomeUnknown: break
        default: #expect(!texts.contains(text), "\(number): \(String(describing: code))")
        }
        if let code { seen.insert(code) }
      }
    }
    #expect(seen.contains(errno == .noSpace ? .diskFull : .outcomeUnknown))
  }

  @Test(arguments: [
    (ResultCode.SQLITE_IOERR, EngineError.Code.outcomeUnknown), (.SQLITE_NOMEM, .outcomeUnknown),
    (.SQLITE_FULL, .diskFull), (.SQLITE_BUSY, .busy),
  ])
  func `a COMMIT that is possibly in the log has an unknown outcome`(
    result: ResultCode, told: EngineError.Code
  ) {
    let failure = TransactionFailure.committing(DatabaseError(resultCode: result))
    #expect(EngineError(translating: failure, during: "publishing").code == told)
  }

  @Test func `a batch that a full disk refuses is absent from the log after a kill`() async throws {
    let steps = try await Self.publishBatch(fullAt: nil)
    #expect(steps.count > 1)
    for step in steps { _ = try await Self.publishBatch(fullAt: step) }
  }

  /// Publishes a batch of many pages on a disk that is full at one step.
  ///
  /// - Returns: the steps of the disk that belong to the batch.
  private static func publishBatch(fullAt step: Int?) async throws -> Range<Int> {
    let recorded = RecordedEngine(fault: step.map { .failure(atEvent: $0, .noSpace) })
    let pool = try recorded.openPool(isRecorded: true)
    defer { try? pool.close() }
    let engine = try MessagingEngine(pool: pool, time: recorded.time, isSecured: true)
    try await engine.publish(Message(channel: RecordedEngine.channel, payload: [1]))
    let before = try recorded.imageDigest()
    let first = recorded.recorder.failableEventCount
    let batch = RecordedEngine.many.map {
      Message(channel: RecordedEngine.channel, payload: Array($0.utf8))
    }
    let told = await code { try await engine.publish(batch) }
    if let told, told != .outcomeUnknown {
      #expect(try recorded.imageDigest() == before, "told \(told) at step \(step ?? -1)")
    }
    #expect((told == nil) == (step == nil))
    return first..<recorded.recorder.failableEventCount
  }

  /// Three callers that share one commit; nil if there was no engine.
  private static func publish(on recorded: RecordedEngine) async throws -> [EngineError.Code?]? {
    guard let pool = try? recorded.openPool(isRecorded: true) else { return nil }
    defer { try? pool.close() }
    guard
      let engine = try? MessagingEngine(pool: pool, time: recorded.time, isSecured: true)
    else { return nil }
    let gate = WriterGate(pool)
    var callers: [Task<EngineError.Code?, Never>] = []
    for text in texts {
      let message = Message(channel: RecordedEngine.channel, payload: Array(text.utf8))
      callers.append(Task { await code { try await engine.publish(message) } })
      try await eventually { engine.waitingCount >= callers.count }
    }
    gate.open()
    var codes: [EngineError.Code?] = []
    for caller in callers { codes.append(await caller.value) }
    return codes
  }
}
