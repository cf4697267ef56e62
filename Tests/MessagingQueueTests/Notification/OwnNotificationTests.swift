import FileLayer
import Synchronization
import TestSupport
import Testing

@testable import MessagingQueue

/// The notification of an engine's own commit, which its own listener gets too.
///
/// A test whose notification is lost would wait for ever, hence the time limit.
@Suite(.timeLimit(.minutes(10))) struct OwnNotificationTests {
  @Test func `an own commit is known when publish() returns, and one of another engine wakes all`()
    async throws
  {
    let plain = try PlainEngine()
    let (engine, other) = (try plain.engine(), try plain.neighbour())
    let notifier = engine.notifier
    // The listener wakes the first waiter when it begins.
    #expect(await notifier.waitForChange(after: notifier.generation) == .changed)
    for _ in 0..<20 {
      try await engine.publish(["own"], to: .orders)
      let number = try plain.number("SELECT commit_number FROM engine")
      #expect(notifier.state.withLock { $0.seen?.commitNumber } == number.map { Int64($0) })
    }
    let elsewhere = try Channel("elsewhere")
    let before = notifier.generation
    try await other.publish(["other"], to: .orders)
    #expect(await notifier.waitForChange(after: before, in: [elsewhere]) == .changed)
    try await other.stop()
  }

  @Test func `the notification of an own commit wakes no waiter a second time`() async throws {
    let commits = Atomic<Int64>(1)
    let probeCount = Atomic(0)
    let transport = TestTransport()
    var intervals = ChangeNotifier.Intervals()
    intervals.fallbackCheck = .seconds(3600)
    let notifier = ChangeNotifier(
      transport: transport, intervals: intervals,
      probe: {
        defer { probeCount.add(1, ordering: .sequentiallyConsistent) }
        return DatabaseMark(commitNumber: commits.load(ordering: .sequentiallyConsistent))
      })
    #expect(await notifier.waitForChange(after: notifier.generation) == .changed)
    let start = notifier.generation.rawValue
    for round in 1...20 {
      let before = probeCount.load(ordering: .sequentiallyConsistent)
      notifier.announceReturn(to: .orders)
      notifier.announce(commit: commits.add(1, ordering: .sequentiallyConsistent).newValue)
      notifier.notifyAnnounced()
      try await eventually("the listener's thread reads the database") {
        probeCount.load(ordering: .sequentiallyConsistent) > before
      }
      #expect(notifier.generation.rawValue == start + UInt64(round))
    }
    // The thread has handled all of them when it has woken the waiters for a commit of another process.
    commits.add(1, ordering: .sequentiallyConsistent)
    try transport.notify()
    try await eventually("the other commit") { notifier.generation.rawValue > start + 20 }
    #expect(notifier.generation.rawValue == start + 21)
  }

  @Test(arguments: 1...30)
  func `no notification of another process is lost among those of own commits`(seed: UInt64)
    async throws
  {
    var random = SeededRandom(seed: seed)
    let commits = Atomic<Int64>(1)
    let transport = TestTransport()
    var intervals = ChangeNotifier.Intervals()
    intervals.fallbackCheck = .seconds(3600)
    let notifier = ChangeNotifier(
      transport: transport, intervals: intervals,
      probe: { DatabaseMark(commitNumber: commits.load(ordering: .sequentiallyConsistent)) })
    let (own, foreign) = (try Channel("own"), try Channel("foreign"))
    #expect(await notifier.waitForChange(after: notifier.generation) == .changed)

    /// A commit of this engine, with or without a known number.
    func commit(isNumbered: Bool) {
      let number = commits.add(1, ordering: .sequentiallyConsistent).newValue
      notifier.announceReturn(to: own)
      if isNumbered { notifier.announce(commit: number) }
      notifier.notifyAnnounced()
    }
    for _ in 0..<100 {
      for _ in 0..<random.next(3) { commit(isNumbered: !random.oneIn(4)) }
      try await eventually {
        notifier.state.withLock { $0.seen?.commitNumber }
          == commits.load(ordering: .sequentiallyConsistent)
      }
      // Only a wake of all waiters ends this wait.
      let wait = Task { await notifier.waitForChange(after: notifier.generation, in: [foreign]) }
      try await eventually { notifier.waiterCount > 0 }
      commits.add(1, ordering: .sequentiallyConsistent)
      // Its notification is late, or is lost because the process was killed.
      let isLost = random.oneIn(3)
      for _ in 0..<random.next(3) { commit(isNumbered: !random.oneIn(4)) }
      if isLost { commit(isNumbered: true) } else { try transport.notify() }
      #expect(await wait.value == .changed)
    }
  }
}
