import Foundation
import Testing

/// `make crash STATES=100000` tries that many states of each workload; here 2,000.
@Suite struct EnumerationTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let stateCount = environment["DATAVAULT_CRASH_STATES"].flatMap(Int.init) ?? 2000
  private static let seed =
    environment["DATAVAULT_CRASH_SEED"].flatMap(UInt64.init) ?? 0x5EED

  @Test(arguments: CrashWorkload.allCases)
  func `no power cut loses what was acknowledged or shows what was not committed`(
    workload: CrashWorkload
  ) throws {
    // What plain SQLite survives is not lost by us: the same cuts are tried on its own files.
    let forms = workload.hasPlainTwin ? FileForm.allCases : [.sealed]
    for form in forms {
      let enumeration = CrashEnumeration(
        work: try workload.record(form), form: form, mayForget: workload.mayForget)
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
}
