import Foundation
import Testing

/// Compares the queue with ``QueueModel``: the same random operations, the same answers.
///
/// `DATAVAULT_MODEL_STEPS` sets the number of steps.
@Suite struct ModelTests {
  private static let stepsEach = 250
  private static let seedCount =
    (Int(ProcessInfo.processInfo.environment["DATAVAULT_MODEL_STEPS"] ?? "") ?? 5_000) / stepsEach

  @Test func `every result equals the model's, also for operations that share a commit`() throws {
    var steps = 0
    let reports = Reports()
    for seed in 0..<Self.seedCount {
      var run = try ModelRun(seed: UInt64(seed), reports)
      for _ in 0..<Self.stepsEach {
        guard try run.step() else { return }
        steps += 1
      }
      guard try run.finish() else { return }
    }
    print("model: \(steps) steps equal")
    #expect(steps == Self.seedCount * Self.stepsEach)
    #expect(reports.operationCounts.contains { $0 > 3 })
  }
}
