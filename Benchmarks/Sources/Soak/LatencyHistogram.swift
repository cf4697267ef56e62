/// A histogram of durations, with median and 99th percentile in constant space.
///
/// Each bucket is an eighth larger than the previous one.
struct LatencyHistogram: Sendable, CustomStringConvertible {
  private var counts = [Int](repeating: 0, count: 8 * 48)
  private var total = 0

  mutating func add(_ duration: Duration) {
    let nanoseconds = max(UInt64(clamping: Int64(duration / .nanoseconds(1))), 8)
    let exponent = 63 - nanoseconds.leadingZeroBitCount
    let eighth = Int(nanoseconds >> (exponent - 3)) & 7
    counts[min(exponent * 8 + eighth, counts.count - 1)] += 1
    total += 1
  }

  /// The upper bound of the bucket below which this share of all durations lies, in milliseconds.
  func percentile(_ share: Double) -> Double {
    var left = Int((Double(total) * share).rounded(.up))
    for (bucket, count) in counts.enumerated() where count > 0 {
      left -= count
      if left <= 0 {
        let (exponent, eighth) = (bucket / 8, bucket % 8)
        return Double(UInt64(9 + eighth) << (exponent - 3)) / 1e6
      }
    }
    return 0
  }

  var description: String {
    "\(Self.text(percentile(0.5)))/\(Self.text(percentile(0.99))) ms"
  }

  private static func text(_ number: Double) -> String { "\((number * 10).rounded() / 10)" }
}
