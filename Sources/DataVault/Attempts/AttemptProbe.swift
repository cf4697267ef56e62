internal import FileLayer

/// The record of attempts by itself, for a fuzzer.
@_spi(Testing)
public enum AttemptProbe {
  /// What a vault makes of a record that it reads.
  public struct Reading: Sendable, Equatable {
    /// The record as it would be written again.
    public let written: [UInt8]
    /// How long no attempt is taken, once a moment that is too far ahead has been brought near.
    public let wait: Duration
    /// The record after one more wrong attempt.
    public let afterFailure: [UInt8]
    /// How long no attempt is taken after that.
    public let waitAfterFailure: Duration
  }

  /// Reads a record at a moment; nil for what breaks a rule, which counts as no record.
  ///
  /// - Parameter now: nanoseconds since 1970.
  public static func reading(_ file: [UInt8], now: Int64) -> Reading? {
    guard let record = try? AttemptRecord(parsing: file) else { return nil }
    let now = UnixTime(nanoseconds: now)
    var limited = record
    limited.limitWait(at: now)
    var failed = limited
    failed.recordFailure(at: now)
    return Reading(
      written: record.bytes, wait: limited.wait(at: now), afterFailure: failed.bytes,
      waitAfterFailure: failed.wait(at: now))
  }
}
