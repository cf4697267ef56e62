import FileRecording
import MessagingQueue
import Testing

@Suite struct ChangeCoalescerTests {
  let clock = ManualTimeSource(sinceBoot: .zero)
  var now: Duration { clock.sinceBoot }

  @Test func `the first event starts the timer, and its end sends one notification`() {
    var coalescer = ChangeCoalescer(delay: .milliseconds(100), maximumLatency: .seconds(1))
    #expect(coalescer.time(now) == .waitForEvent)
    #expect(coalescer.changed(at: now) == .waitForEventOrTime(.milliseconds(100)))
    clock.advance(by: .milliseconds(99))
    #expect(coalescer.time(now) == .waitForEventOrTime(.milliseconds(100)))
    clock.advance(by: .milliseconds(1))
    #expect(coalescer.time(now) == .tell)
    #expect(coalescer.time(now) == .waitForEvent)
  }

  @Test func `a further event restarts the timer, within the maximum latency`() {
    var coalescer = ChangeCoalescer(delay: .milliseconds(100), maximumLatency: .milliseconds(250))
    var due: [Duration] = []
    for _ in 0..<5 {
      guard case .waitForEventOrTime(let time) = coalescer.changed(at: now) else {
        Issue.record("told at \(now)")
        return
      }
      due.append(time)
      clock.advance(by: .milliseconds(50))
    }
    #expect(due == [100, 150, 200, 250, 250].map { .milliseconds($0) })
    #expect(now == .milliseconds(250))
    #expect(coalescer.time(now) == .tell)
  }

  @Test func `an event after the due time sends the notification immediately`() {
    var coalescer = ChangeCoalescer(delay: .milliseconds(100), maximumLatency: .seconds(1))
    _ = coalescer.changed(at: now)
    clock.advance(by: .seconds(3))
    #expect(coalescer.changed(at: now) == .tell)
    #expect(coalescer.changed(at: now) == .waitForEventOrTime(.milliseconds(3100)))
  }

  @Test func `without a delay each event sends a notification immediately`() {
    var coalescer = ChangeCoalescer(delay: .zero, maximumLatency: .zero)
    for _ in 0..<3 { #expect(coalescer.changed(at: now) == .tell) }
  }

  @Test func `a latency below the delay is raised to the delay`() {
    var coalescer = ChangeCoalescer(delay: .milliseconds(100), maximumLatency: .zero)
    #expect(coalescer.changed(at: now) == .waitForEventOrTime(.milliseconds(100)))
  }

  @Test func `under a steady stream no event waits longer than the maximum latency`() {
    var coalescer = ChangeCoalescer(delay: .milliseconds(30), maximumLatency: .milliseconds(100))
    var waitingSince: Duration?
    var told = 0
    for _ in 0..<1000 {
      waitingSince = waitingSince ?? now
      if coalescer.changed(at: now) == .tell {
        #expect(now - waitingSince! <= .milliseconds(100))
        waitingSince = nil
        told += 1
      }
      clock.advance(by: .milliseconds(10))
    }
    #expect(told == 90)
  }
}
