/// How long a client waits before it tries again: longer each time, and never exactly as long as other clients.
public struct Backoff: Sendable, Hashable {
  /// The wait after the first failure.
  ///
  /// Default: 1 second.
  public var first: Duration
  /// The longest wait.
  ///
  /// Default: 60 seconds.
  public var maximum: Duration

  /// Makes the waits.
  public init(first: Duration = .seconds(1), maximum: Duration = .seconds(60)) {
    self.first = first
    self.maximum = maximum
  }

  /// The wait after this many failures in a row, between half of the full wait and all of it.
  func wait(
    afterFailures count: Int, _ generator: inout some RandomNumberGenerator
  ) -> Duration {
    let full = min(first * Double(1 << min(max(count - 1, 0), 30)), maximum)
    return full * Double.random(in: 0.5...1, using: &generator)
  }
}

extension Duration {
  fileprivate static func * (duration: Duration, factor: Double) -> Duration {
    let (seconds, attoseconds) = duration.components
    return .seconds((Double(seconds) + Double(attoseconds) * 1e-18) * factor)
  }
}
