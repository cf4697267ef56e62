import FileLayer
import FileRecording
import Foundation
import Testing

@Suite struct TimeSourceTests {
  @Test func `manual clocks change only when a test moves them`() {
    let time = ManualTimeSource(
      now: UnixTime(nanoseconds: 1000), sinceBoot: .seconds(5), bootID: "first")
    #expect(time.now == UnixTime(nanoseconds: 1000))
    #expect(time.now == time.now)
    time.advance(by: .nanoseconds(1_500_000_001))
    #expect(time.now == UnixTime(nanoseconds: 1_500_001_001))
    #expect(time.sinceBoot == .seconds(5) + .nanoseconds(1_500_000_001))
    #expect(time.bootID == "first")
  }

  @Test func `setNow() changes only the wall clock`() {
    let time = ManualTimeSource(sinceBoot: .seconds(5))
    time.setNow(UnixTime(nanoseconds: -7))
    #expect(time.now == UnixTime(nanoseconds: -7))
    #expect(time.sinceBoot == .seconds(5))
  }

  @Test func `reboot() resets the boot clock and changes the boot id`() {
    let time = ManualTimeSource(bootID: "first")
    let before = time.now
    time.reboot(as: "second")
    #expect(time.bootID == "second")
    #expect(time.sinceBoot == .zero)
    #expect(time.now == before)
  }

  @Test func `SystemTimeSource returns the kernel's clocks`() throws {
    let time = try SystemTimeSource()
    let wall = Int64(Date().timeIntervalSince1970)
    #expect(abs(time.now.nanoseconds / 1_000_000_000 - wall) <= 60)
    let first = time.sinceBoot
    #expect(first > .zero)
    #expect(time.sinceBoot >= first)
    #expect(UUID(uuidString: time.bootID) != nil)
    #expect(try SystemTimeSource().bootID == time.bootID)
  }

  @Test func `wholeNanoseconds rounds toward zero`() {
    #expect(Duration.seconds(-1).wholeNanoseconds == -1_000_000_000)
    #expect(
      Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999).wholeNanoseconds == 1)
    #expect(Duration.seconds(100_000_000).wholeNanoseconds == 100_000_000_000_000_000)
  }
}
