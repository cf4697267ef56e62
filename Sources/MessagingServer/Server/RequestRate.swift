/// Bounds the requests of one connection: a token bucket without a timer.
///
/// It keeps the moment at which the bucket would be full again. A request moves it on by one interval.
struct RequestRate: Sendable {
  /// How many requests a connection can send.
  struct Limits: Sendable {
    /// Requests each second, for any length of time; at least 1.
    ///
    /// Default: 2,000.
    var requestsPerSecond = 2_000
    /// Requests that can come together after a pause; at least 1.
    ///
    /// Default: 4,000.
    var burstCount = 4_000
  }

  private let nanosecondsPerRequest: UInt64
  private let burstNanoseconds: UInt64
  private var full: UInt64 = 0

  init(_ limits: Limits = Limits()) {
    nanosecondsPerRequest = max(1, 1_000_000_000 / UInt64(max(limits.requestsPerSecond, 1)))
    burstNanoseconds = nanosecondsPerRequest * UInt64(max(limits.burstCount, 1))
  }

  /// Counts a request at a moment of a clock that does not go back; false if it comes too early.
  ///
  /// A refused request is not counted.
  mutating func take(atNanoseconds now: UInt64) -> Bool {
    let next = max(full, now) + nanosecondsPerRequest
    guard next - now <= burstNanoseconds else { return false }
    full = next
    return true
  }
}
