import TestSupport
import Testing

/// `make crash RUNS=1000` runs these with `DATAVAULT_KILL_RUNS=1000`; the default is 6.
@Suite struct SharedRunTests {
  /// Most of a run's time is waiting, so several run at a time, each on a home of its own.
  private static let laneCount = 3

  @Test func `kill -9 of several publishers and receivers loses, repeats and reorders nothing`()
    async throws
  {
    let count: Int = setting("DATAVAULT_KILL_RUNS") ?? 6
    let seed = SeededRandom.killSeed()
    let totals = try await withThrowingTaskGroup(of: SharedRuns.Totals.self) { group in
      for lane in 0..<min(Self.laneCount, count) {
        group.addTask {
          try await SharedRuns(seed: seed &+ UInt64(lane))(
            Array(stride(from: lane, to: count, by: Self.laneCount)))
        }
      }
      return try await group.reduce(SharedRuns.Totals()) { $0 + $1 }
    }
    print("\(totals.summary), seed: \(seed)")
    #expect(totals.findings == [])
    #expect(totals.lost == 0)
    #expect(totals.runs == count)
    #expect(totals.acknowledged > 0 && totals.received > 0)
  }

  // MARK: The checker

  private static func label(_ number: Int) -> DeliveryChecker.Label {
    DeliveryChecker.Label(publisher: 0, number: number)
  }

  private static func visit(
    _ start: Int, _ end: Int, _ deliveries: [(Int, DeliveryChecker.Settlement)]
  ) -> DeliveryChecker.Visit {
    DeliveryChecker.Visit(
      start: .milliseconds(start), end: .milliseconds(end), lease: .milliseconds(400),
      deliveries: deliveries.map { (label($0.0), "key", $0.1) })
  }

  private static func drain(_ numbers: [Int]) -> DeliveryChecker.Visit {
    visit(2000, 2100, numbers.map { ($0, .certain(at: .milliseconds(2100))) })
  }

  @Test func `the checker accepts a correct queue`() {
    let visits = [
      Self.visit(0, 100, [(0, .certain(at: .milliseconds(100))), (1, .none)]),
      Self.visit(600, 700, [(1, .perhaps)]),
    ]
    for last in [[1, 2, 3], [2, 3], [2, 3, 4]] {
      let checker = DeliveryChecker(acknowledged: [4], visits: visits, drain: Self.drain(last))
      #expect(checker.lost == [] && checker.wrong == [], "\(last)")
    }
  }

  @Test func `the checker reports a missing message as lost`() {
    let visits = [Self.visit(0, 100, [(0, .none)])]
    for (last, lost) in [([0, 1], [2]), ([0, 2], [1]), ([1, 2], [0]), ([], [0, 1, 2])] {
      let checker = DeliveryChecker(acknowledged: [3], visits: visits, drain: Self.drain(last))
      #expect(checker.lost == lost.map(Self.label), "\(last)")
    }
    // A message that was seen proves those before it, acknowledged to their publisher or not.
    let checker = DeliveryChecker(acknowledged: [0], drain: Self.drain([0, 2]))
    #expect(checker.lost == [Self.label(1)])
  }

  @Test func `the checker reports repeated, early and misordered messages`() {
    let held = Self.visit(0, 100, [(0, .none)])
    let taken = Self.visit(0, 100, [(0, .certain(at: .milliseconds(100)))])
    for (visits, last) in [
      ([], [0, 0]), ([taken], [0]), ([taken, Self.visit(200, 300, [(0, .none)])], []),
      ([held, Self.visit(200, 300, [(0, .perhaps)])], []), ([], [1, 0]),
      ([Self.visit(0, 100, [(1, .perhaps)])], [0]),
    ] as [([DeliveryChecker.Visit], [Int])] {
      let checker = DeliveryChecker(acknowledged: [0], visits: visits, drain: Self.drain(last))
      #expect(!checker.wrong.isEmpty, "\(visits) \(last)")
    }
  }
}
