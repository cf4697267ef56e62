/// How long a vault takes no attempt after failures in a row: 1 s after the third, then doubling,
/// 15 minutes at most.
enum BackOff {
  static let maximumSeconds = 15 * 60
  private static let failureCountWithoutDelay = 2

  static func seconds(afterFailures count: Int) -> Int {
    guard count > failureCountWithoutDelay else { return 0 }
    let doublings = min(count - failureCountWithoutDelay - 1, 10)  // 1024 s exceed the maximum
    return min(1 << doublings, maximumSeconds)
  }
}
