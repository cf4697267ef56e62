import Synchronization

/// A clock that a test moves.
final class ManualClock: Clock {
  struct Instant: InstantProtocol {
    var time: Duration

    func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
    func duration(to other: Instant) -> Duration { other.time - time }
    static func < (a: Instant, b: Instant) -> Bool { a.time < b.time }
  }

  private let time = Mutex(Duration.seconds(1000))

  var now: Instant { Instant(time: time.withLock { $0 }) }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {}

  func advance(_ duration: Duration) { time.withLock { $0 += duration } }
}
