import Foundation
import Testing

/// `make crash STATES=100000` tries that many states of each workload; here 300.
@Suite struct EnumerationTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let stateCount = environment["DATAVAULT_CRASH_STATES"].flatMap(Int.init) ?? 300
  private static let seed =
    environment["DATAVAULT_CRASH_SEED"].flatMap(UInt64.init) ?? 0x5EED

  @Test(arguments: CrashWorkload.allCases)
  func `no power cut loses what was acknowledged or shows what was not committed`(
    workload: CrashWorkload
  ) async throws {
    // What plain SQLite survives is not lost by us: the same cuts are tried on its own files.
    let forms = workload.hasPlainTwin ? FileForm.allCases : [.sealed]
    for form in forms {
      let enumeration = CrashEnumeration(
        work: try await workload.record(form), form: form, mayForget: workload.mayForget)
      let totals = try enumeration(stateCount: Self.stateCount, seed: Self.seed)
      print(
        """
        crash states: \(workload) \(form), events: \(enumeration.work.events.count), \
        states: \(totals.states), lost: \(totals.lost), wrong: \(totals.wrong)
        """)
      #expect(totals.lost == 0, "\(form): \(totals.findings)")
      #expect(totals.wrong == 0, "\(form): \(totals.findings)")
    }
  }

  @Test func `an engine starts from every state that a cut leaves, with all that was acknowledged`()
    async throws
  {
    let asked = Self.stateCount / 10
    let totals = try await StartEnumeration()(stateCount: asked)
    print("crash starts: \(totals.states), lost: \(totals.lost), wrong: \(totals.wrong)")
    #expect(totals.lost == 0, "\(totals.findings.prefix(5))")
    #expect(totals.wrong == 0, "\(totals.findings.prefix(5))")
    // Homes that are equal after neighbouring cuts count once.
    #expect(totals.states >= min(asked * 2 / 3, 40))
  }

  @Test func `a log that lacks, repeats or swaps a message, or brings one back, is noticed`() {
    let notes = [
      "made", "publishing a", "published a", "publishing b", "published b", "publishing c",
      "acknowledging a", "acknowledged a",
    ]
    #expect(StartEnumeration.judge(["b"], notes) == nil)
    #expect(StartEnumeration.judge(["b", "c"], notes) == nil)
    for wrong in [[], ["c"], ["b", "b"], ["c", "b"], ["a", "b"], ["b", "d"]] {
      #expect(StartEnumeration.judge(wrong, notes) != nil, "\(wrong)")
    }
  }
}
