import MessagingQueue
import Synchronization
import TestSupport
import Testing

@Suite struct ChangeNotifierTests {
  @Test func `a notification before the wait is not missed`() async {
    let notifier = ChangeNotifier()
    let count = notifier.generation
    notifier.notify()
    #expect(await notifier.waitForChange(after: count) == .changed)
  }

  @Test func `a notification wakes every waiter`() async throws {
    let notifier = ChangeNotifier()
    let count = notifier.generation
    let waits = (0..<100).map { _ in Task { await notifier.waitForChange(after: count) } }
    try await eventually { notifier.waiterCount == 100 }
    notifier.notify()
    for wait in waits { #expect(await wait.value == .changed) }
  }

  @Test func `a notification in one channel does not wake the waiters of others`() async throws {
    let notifier = ChangeNotifier()
    let (a, b) = (try Channel("a"), try Channel("b"))
    let count = notifier.generation
    let forA = Task { await notifier.waitForChange(after: count, in: [a]) }
    let forB = Task { await notifier.waitForChange(after: count, in: [b]) }
    let forAll = Task { await notifier.waitForChange(after: count) }
    try await eventually { notifier.waiterCount == 3 }
    notifier.notify(in: [a])
    #expect(await forA.value == .changed)
    #expect(await forAll.value == .changed)
    #expect(notifier.waiterCount == 1)
    notifier.notify(in: [b])
    #expect(await forB.value == .changed)
  }

  @Test func `a wait ends at its limit, at a cancellation and when the engine stops`() async throws
  {
    let notifier = ChangeNotifier()
    let count = notifier.generation
    #expect(await notifier.waitForChange(after: count, within: .milliseconds(5)) == .timedOut)
    #expect(await notifier.waitForChange(after: count, within: .zero) == .timedOut)
    let cancelled = Task { await notifier.waitForChange(after: count) }
    cancelled.cancel()
    #expect(await cancelled.value == .cancelled)
    let stopped = Task { await notifier.waitForChange(after: count) }
    try await eventually { notifier.waiterCount == 1 }
    notifier.stop()
    #expect(await stopped.value == .stopped)
    #expect(await notifier.waitForChange(after: count) == .stopped)
  }

  @Test func `a notification of another process wakes waiters`() async {
    let transport = TestTransport()
    let notifier = ChangeNotifier(transport: transport)
    let other = ChangeNotifier(transport: transport)
    await settle(notifier)
    let count = notifier.generation
    async let wake = notifier.waitForChange(after: count)
    other.notify()
    #expect(await wake == .changed)
  }

  @Test func `the notifier polls the database while the transport refuses`()
    async throws
  {
    let transport = TestTransport()
    transport.refuses = true
    let commits = Atomic<Int64>(1)
    var intervals = ChangeNotifier.Intervals()
    intervals.polling = .milliseconds(10)
    let notifier = ChangeNotifier(
      transport: transport, intervals: intervals,
      probe: { DatabaseMark(commitNumber: commits.load(ordering: .relaxed)) })
    await settle(notifier)
    let count = notifier.generation
    #expect(await notifier.waitForChange(after: count, within: .milliseconds(100)) == .timedOut)
    commits.add(1, ordering: .relaxed)
    #expect(await notifier.waitForChange(after: count) == .changed)
    transport.refuses = false
    let later = notifier.generation
    let wait = Task { await notifier.waitForChange(after: later) }
    try await eventually { transport.listenerCount > 0 }
    commits.add(1, ordering: .relaxed)
    try transport.notify()
    #expect(await wait.value == .changed)
  }

  @Test func `polling finds a commit whose notification was lost`() async {
    let commits = Atomic<Int64>(1)
    var intervals = ChangeNotifier.Intervals()
    intervals.fallbackCheck = .milliseconds(10)
    let notifier = ChangeNotifier(
      transport: TestTransport(), intervals: intervals,
      probe: { DatabaseMark(commitNumber: commits.load(ordering: .relaxed)) })
    await settle(notifier)
    let count = notifier.generation
    commits.add(1, ordering: .relaxed)
    #expect(await notifier.waitForChange(after: count) == .changed)
  }

  @Test func `a lost listener is replaced, and waiters are woken`() async {
    let transport = TestTransport()
    let notifier = ChangeNotifier(transport: transport)
    await settle(notifier)
    let count = notifier.generation
    transport.post(.lost)
    #expect(await notifier.waitForChange(after: count) == .changed)
    #expect(transport.listenCount == 2)
  }

  @Test func `notify() never fails, whatever the transport does`() async {
    let transport = TestTransport()
    transport.refuses = true
    let notifier = ChangeNotifier(transport: transport)
    let count = notifier.generation
    notifier.notify()
    #expect(await notifier.waitForChange(after: count) == .changed)
  }

  /// The first wait starts the thread, which wakes waiters when it begins to listen.
  private func settle(_ notifier: ChangeNotifier) async {
    let count = notifier.generation
    #expect(await notifier.waitForChange(after: count) == .changed)
  }
}
