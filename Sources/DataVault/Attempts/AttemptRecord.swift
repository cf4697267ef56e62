internal import FileLayer

/// The record of attempts to open a vault, shared by all `Vault` objects and processes.
///
/// It is neither encrypted nor authenticated: `docs/reference/vault-format.md` says what that means. Times
/// are milliseconds since 1970, and no number that the format allows overflows them.
struct AttemptRecord: Sendable, Equatable {
  /// The number of failed attempts since the last successful one.
  var failureCount = 0
  /// The vault refuses attempts before this time.
  var retryAtMilliseconds: Int?
  /// The time at which a slot last opened the vault.
  var openedAtMilliseconds: Int?

  private static let maximumFailureCount = 1_000_000

  /// The time until the vault accepts an attempt; zero when it accepts one now.
  func wait(at now: UnixTime) -> Duration {
    guard let retryAtMilliseconds else { return .zero }
    return .milliseconds(max(0, retryAtMilliseconds - now.milliseconds))
  }

  /// Limits the retry time to the latest time that these failures allow.
  ///
  /// A later time means that the clock jumped or that somebody edited the file.
  mutating func limitWait(at now: UnixTime) {
    guard let retryAtMilliseconds else { return }
    let latest = now.milliseconds + BackOff.seconds(afterFailures: failureCount) * 1000
    self.retryAtMilliseconds = min(retryAtMilliseconds, latest)
  }

  /// Counts a failed attempt.
  mutating func recordFailure(at now: UnixTime) {
    failureCount = min(failureCount + 1, Self.maximumFailureCount)
    let seconds = BackOff.seconds(afterFailures: failureCount)
    retryAtMilliseconds = seconds > 0 ? now.milliseconds + seconds * 1000 : nil
  }

  /// The record after a successful attempt: it holds no failures.
  static func opened(at now: UnixTime) -> AttemptRecord {
    AttemptRecord(openedAtMilliseconds: now.milliseconds)
  }
}

extension UnixTime {
  /// Whole milliseconds since 1970, never negative.
  var milliseconds: Int { max(0, Int(nanoseconds / 1_000_000)) }
}

extension AttemptRecord {
  /// The maximum size of a record in bytes.
  static let maximumByteCount = 4096
  private static let version = 1

  /// Parses the file `<id>.retry`.
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

  /// The contents of the file.
  var bytes: [UInt8] {
    func text(_ moment: Int?) -> String { moment.map(String.init) ?? "null" }
    return Array(
      """
      {"version":\(Self.version),"failures":\(failureCount),\
      "retryAt":\(text(retryAtMilliseconds)),"openedAt":\(text(openedAtMilliseconds))}\n
      """.utf8)
  }
}

/// The delay after consecutive failed attempts: 1 s after the third, then doubled each time, 15
/// minutes at most.
enum BackOff {
  static let maximumSeconds = 15 * 60
  private static let failureCountWithoutDelay = 2

  static func seconds(afterFailures count: Int) -> Int {
    guard count > failureCountWithoutDelay else { return 0 }
    let doublings = min(count - failureCountWithoutDelay - 1, 10)  // 1024 s exceeds the maximum
    return min(1 << doublings, maximumSeconds)
  }
}
