import FileLayer
import Synchronization
import TestSupport
import Testing

@testable import MessagingQueue

/// The notification of an engine's own commit, which its own listener gets too.
///
/// A test whose notification is lost would wait for ever, hence the time limit.
@Suite(.timeLimit(.minutes(10))) struct OwnNotificationTests {
  @Test func `a commit of an engine wakes its own waiters once, and one of another engine all`()
    async throws
  {
    let plain = try PlainEngine()
    let (engine, other) = (try plain.engine(), try plain.neighbour())
    let notifier = engine.notifier
    // The listener wakes the first waiter when it begins.
    #expect(await notifier.waitForChange(after: notifier.generation) == .changed)
    let start = notifier.generation.rawValue
    for round in 1...20 {
      try await engine.publish(["own"], to: .orders)
      // The listener's thread has time for a second wake.
      try await Task.sleep(for: .milliseconds(5))
      #expect(notifier.generation.rawValue == start + UInt64(round))
    }
    let elsewhere = try Channel("elsewhere")
    let before = notifier.generation
    try await other.publish(["other"], to: .orders)
    #expect(await notifier.waitForChange(after: before, in: [elsewhere]) == .changed)
    try await other.stop()
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
