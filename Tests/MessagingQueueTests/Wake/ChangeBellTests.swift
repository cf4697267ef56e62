import Foundation
import MessagingQueue
import Synchronization
import Testing

@Suite struct ChangeBellTests {
  @Test func `a ring before the wait is not missed`() async {
    let bell = ChangeBell()
    let count = bell.ringCount
    bell.ring()
    #expect(await bell.nextRing(after: count) == .rang)
  }

  @Test func `a ring wakes everyone who waits`() async throws {
    let bell = ChangeBell()
    let count = bell.ringCount
    let waits = (0..<100).map { _ in Task { await bell.nextRing(after: count) } }
    try await untilWaiting(100, bell)
    bell.ring()
    for wait in waits { #expect(await wait.value == .rang) }
  }

  @Test func `a ring in one channel leaves those who wait for others asleep`() async throws {
    let bell = ChangeBell()
    let (a, b) = (try Channel("a"), try Channel("b"))
    let count = bell.ringCount
    let forA = Task { await bell.nextRing(after: count, in: [a]) }
    let forB = Task { await bell.nextRing(after: count, in: [b]) }
    let forAll = Task { await bell.nextRing(after: count) }
    try await untilWaiting(3, bell)
    bell.ring(in: [a])
    #expect(await forA.value == .rang)
    #expect(await forAll.value == .rang)
    #expect(bell.waiterCount == 1)
    bell.ring(in: [b])
    #expect(await forB.value == .rang)
  }

  @Test func `a wait ends at its limit, at a cancellation and when the engine stops`() async throws
  {
    let bell = ChangeBell()
    let count = bell.ringCount
    #expect(await bell.nextRing(after: count, within: .milliseconds(5)) == .timedOut)
    #expect(await bell.nextRing(after: count, within: .zero) == .timedOut)
    let cancelled = Task { await bell.nextRing(after: count) }
    cancelled.cancel()
    #expect(await cancelled.value == .cancelled)
    let stopped = Task { await bell.nextRing(after: count) }
    try await untilWaiting(1, bell)
    bell.stop()
    #expect(await stopped.value == .stopped)
    #expect(await bell.nextRing(after: count) == .stopped)
  }

  @Test func `a ring of another process wakes who waits`() async {
    let device = TestBell()
    let bell = ChangeBell(device: device)
    let other = ChangeBell(device: device)
    await settle(bell)
    let count = bell.ringCount
    async let wake = bell.nextRing(after: count)
    other.ring()
    #expect(await wake == .rang)
  }

  @Test func `where the device refuses, the database is looked at, until it does not`()
    async throws
  {
    let device = TestBell()
    device.refuses = true
    let commits = Atomic<Int64>(1)
    var intervals = ChangeBell.Intervals()
    intervals.deaf = .milliseconds(10)
    let bell = ChangeBell(
      device: device, intervals: intervals,
      probe: { BellProbe(commitNumber: commits.load(ordering: .relaxed)) })
    await settle(bell)
    let count = bell.ringCount
    #expect(await bell.nextRing(after: count, within: .milliseconds(100)) == .timedOut)
    commits.add(1, ordering: .relaxed)
    #expect(await bell.nextRing(after: count) == .rang)
    device.refuses = false
    let later = bell.ringCount
    let wait = Task { await bell.nextRing(after: later) }
    while device.listenerCount == 0 { try await Task.sleep(for: .milliseconds(1)) }
    try device.ring()
    #expect(await wait.value == .rang)
  }

  @Test func `a commit whose ring was lost is found by looking`() async {
    let commits = Atomic<Int64>(1)
    var intervals = ChangeBell.Intervals()
    intervals.listening = .milliseconds(10)
    let bell = ChangeBell(
      device: TestBell(), intervals: intervals,
      probe: { BellProbe(commitNumber: commits.load(ordering: .relaxed)) })
    await settle(bell)
    let count = bell.ringCount
    commits.add(1, ordering: .relaxed)
    #expect(await bell.nextRing(after: count) == .rang)
  }

  @Test func `a bell that is lost is listened to anew, and counts as a ring`() async {
    let device = TestBell()
    let bell = ChangeBell(device: device)
    await settle(bell)
    let count = bell.ringCount
    device.post(.lost)
    #expect(await bell.nextRing(after: count) == .rang)
    #expect(device.listenCount == 2)
  }

  @Test func `a ring never fails, whatever the device does`() async {
    let device = TestBell()
    device.refuses = true
    let bell = ChangeBell(device: device)
    let count = bell.ringCount
    bell.ring()
    #expect(await bell.nextRing(after: count) == .rang)
  }

  private func untilWaiting(_ count: Int, _ bell: ChangeBell) async throws {
    while bell.waiterCount < count { try await Task.sleep(for: .milliseconds(1)) }
  }

  /// The first wait starts the thread, which rings once when it listens.
  private func settle(_ bell: ChangeBell) async {
    let count = bell.ringCount
    #expect(await bell.nextRing(after: count) == .rang)
  }
}
