internal import FileLayer

/// What is remembered of the attempts to open a vault, over all objects and processes.
///
/// It is clear and unauthenticated: `docs/reference/vault-format.md` says what that means. Moments are
/// milliseconds since 1970, which no number of the format makes overflow.
struct AttemptRecord: Sendable, Equatable {
  /// Wrong attempts since the last right one.
  var failureCount = 0
  /// No attempt is taken before this moment.
  var retryAtMilliseconds: Int?
  /// When the vault was last opened by one of its slots.
  var openedAtMilliseconds: Int?

  private static let maximumFailureCount = 1_000_000

  /// How long no attempt is taken; zero when one is.
  func wait(at now: UnixTime) -> Duration {
    guard let retryAtMilliseconds else { return .zero }
    return .milliseconds(max(0, retryAtMilliseconds - now.milliseconds))
  }

  /// Brings a moment that lies further ahead than these failures allow back to that: the clock
  /// has jumped, or somebody has written it.
  mutating func limitWait(at now: UnixTime) {
    guard let retryAtMilliseconds else { return }
    let latest = now.milliseconds + BackOff.seconds(afterFailures: failureCount) * 1000
    self.retryAtMilliseconds = min(retryAtMilliseconds, latest)
  }

  /// Counts a wrong attempt.
  mutating func recordFailure(at now: UnixTime) {
    failureCount = min(failureCount + 1, Self.maximumFailureCount)
    let seconds = BackOff.seconds(afterFailures: failureCount)
    retryAtMilliseconds = seconds > 0 ? now.milliseconds + seconds * 1000 : nil
  }

  /// The record after a right attempt: nothing of the failures remains.
  static func opened(at now: UnixTime) -> AttemptRecord {
    AttemptRecord(openedAtMilliseconds: now.milliseconds)
  }
}

extension UnixTime {
  /// Whole milliseconds since 1970, never negative.
  var milliseconds: Int { max(0, Int(nanoseconds / 1_000_000)) }
}

extension AttemptRecord {
  /// The most bytes that a record may have.
  static let maximumByteCount = 4096
  private static let version = 1

  /// Takes apart the file `<id>.retry`.
  init(parsing file: [UInt8]) throws(FormatFault) {
    let part = "attempts"
    guard file.last == UInt8(ascii: "\n") else { throw FormatFault(part, "cut short") }
    let bytes = unsafe file.span.bytes
    let members = try JSONText.members(
      ["version", "failures", "retryAt", "openedAt"], in: bytes, 0..<file.count - 1, of: part)
    guard try JSONText.number(in: bytes, members[0], of: part) == Self.version else {
      throw FormatFault(part, "not of version \(Self.version)")
    }
    failureCount = try JSONText.number(in: bytes, members[1], of: part)
    retryAtMilliseconds = try Self.moment(bytes, members[2], of: part)
    openedAtMilliseconds = try Self.moment(bytes, members[3], of: part)
  }

  private static func moment(
    _ bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Int? {
    JSONText.isNull(in: bytes, range) ? nil : try JSONText.number(in: bytes, range, of: part)
  }

  /// The bytes of the file.
  var bytes: [UInt8] {
    func text(_ moment: Int?) -> String { moment.map(String.init) ?? "null" }
    return Array(
      """
      {"version":\(Self.version),"failures":\(failureCount),\
      "retryAt":\(text(retryAtMilliseconds)),"openedAt":\(text(openedAtMilliseconds))}\n
      """.utf8)
  }
}

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
