import Foundation
import Testing

/// The queue against ``QueueModel``: the same operations at random, the same answers.
///
/// `DATAVAULT_MODEL_STEPS` asks for more of them.
@Suite struct ModelTests {
  private static let stepsEach = 250
  private static let seedCount =
    (Int(ProcessInfo.processInfo.environment["DATAVAULT_MODEL_STEPS"] ?? "") ?? 5_000) / stepsEach

  @Test func `every answer is the model's, also of operations that share a commit`() throws {
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
    #expect(reports.verbCounts.contains { $0 > 3 })
  }
}
