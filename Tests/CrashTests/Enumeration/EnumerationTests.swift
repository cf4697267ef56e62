import FileRecording
import TestSupport
import Testing

/// `make crash STATES=100000` tries that many states of each workload, `make test` 40.
@Suite struct EnumerationTests {
  private static let stateCount: Int = setting("DATAVAULT_CRASH_STATES") ?? 40
  private static let seed: UInt64 = setting("DATAVAULT_CRASH_SEED") ?? 0x5EED

  @Test(arguments: CrashWorkload.allCases)
  func `a power cut loses no acknowledged step and shows no uncommitted one`(
    workload: CrashWorkload
  ) async throws {
    // The same cuts are tried on plain SQLite's own files, to compare.
    let forms = workload.runsOnPlainSQLite ? FileForm.allCases : [.sealed]
    for form in forms {
      let enumeration = CrashEnumeration(
        work: try await workload.record(form), form: form, canForget: workload.canForget)
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

  @Test func `an engine starts after every cut with all acknowledged messages`() async throws {
    try await expectNothingLost("starts") { try await StartEnumeration()(stateCount: $0) }
  }

  @Test
  func `a member's home brings all that it has acknowledged into the log after every cut, once`()
    async throws
  {
    try await expectNothingLost("members") { try await MemberEnumeration()(stateCount: $0) }
  }

  private func expectNothingLost(
    _ name: String, _ enumerate: (Int) async throws -> CrashEnumeration.Totals
  ) async throws {
    let asked = Self.stateCount / 10
    let totals = try await enumerate(asked)
    print("crash \(name): \(totals.states), lost: \(totals.lost), wrong: \(totals.wrong)")
    #expect(totals.lost == 0, "\(totals.findings)")
    #expect(totals.wrong == 0, "\(totals.findings)")
    // Equal homes after neighbouring cuts count once.
    #expect(totals.states >= min(asked * 2 / 3, 40))
  }

  @Test func `the check notices a log that lacks, repeats, swaps or restores a message`() {
    let notes = [
      "made", "publishing a", "published a", "publishing b", "published b", "publishing c",
      "acknowledging a", "acknowledged a",
    ]
    #expect(RecordedHome.finding(["b"], notes) == nil)
    #expect(RecordedHome.finding(["b", "c"], notes) == nil)
    for wrong in [[], ["c"], ["b", "b"], ["c", "b"], ["a", "b"], ["b", "d"]] {
      #expect(RecordedHome.finding(wrong, notes) != nil, "\(wrong)")
    }
  }
}
