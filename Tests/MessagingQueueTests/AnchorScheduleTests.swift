import MessagingQueue
import Testing

@Suite struct AnchorScheduleTests {
  @Test func `an anchor is due after a number of commits, and again after as many more`() {
    var schedule = AnchorSchedule(limit: 3)
    var isDue = (1...3).map { _ in schedule.countCommit() }
    #expect(isDue == [false, false, true])
    // While one is being recorded, no second one is due.
    isDue = [schedule.countCommit()]
    #expect(isDue == [false])
    _ = schedule.begin()
    isDue = (1...3).map { _ in schedule.countCommit() }
    #expect(isDue == [false, false, true])
  }

  @Test func `a schedule has news until an anchor covers it, also when attempts fail or overlap`() {
    var schedule = AnchorSchedule(limit: 10)
    #expect(!schedule.hasNews)
    _ = schedule.countCommit()
    let failed = schedule.begin()
    #expect(schedule.hasNews)
    let first = schedule.begin()
    _ = schedule.countCommit()
    let second = schedule.begin()
    schedule.succeed(second)
    #expect(!schedule.hasNews)
    schedule.succeed(first)
    schedule.succeed(failed)
    #expect(!schedule.hasNews)
    _ = schedule.countCommit()
    #expect(schedule.hasNews)
  }
}
