internal import Glibc
internal import SystemPackage

/// The clocks, passed in wherever a decision depends on time.
package protocol TimeSource: Sendable {
  /// The wall clock, which can jump.
  var now: UnixTime { get }

  /// The time since boot, including sleep; it never jumps and starts at zero with each ``bootID``.
  var sinceBoot: Duration { get }

  /// Identifies this boot of the kernel.
  var bootID: String { get }
}

/// A time on the wall clock, counted from 1970-01-01 00:00 UTC.
package struct UnixTime: Sendable, Comparable, Hashable {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  package static func < (a: UnixTime, b: UnixTime) -> Bool { a.nanoseconds < b.nanoseconds }
}

/// The kernel's clocks: `CLOCK_REALTIME`, `CLOCK_BOOTTIME` and `/proc/sys/kernel/random/boot_id`.
package struct SystemTimeSource: TimeSource {
  package let bootID: String

  /// Reads the boot id once.
  ///
  /// - Throws: an error if `/proc` is not mounted, because times since boot are meaningless without
  ///   the id.
  package init() throws(FileError) {
    let path = FilePath("/proc/sys/kernel/random/boot_id")
    let descriptor = unsafe open(path.string, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileError(.read, path, .current) }
    defer { _ = close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 36)
    let count = unsafe bytes.withUnsafeMutableBytes {
      unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
    }
    guard count == bytes.count else { throw FileError(.read, path, .ioError) }
    bootID = String(decoding: bytes, as: UTF8.self)
  }

  package var now: UnixTime {
    let time = Self.time(CLOCK_REALTIME)
    return UnixTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  package var sinceBoot: Duration { Self.sinceBoot }

  /// The boot clock alone, for uses that end with the boot and need no boot id.
  package static var sinceBoot: Duration {
    let time = time(CLOCK_BOOTTIME)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  private static func time(_ clock: clockid_t) -> timespec {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return time
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded toward zero.
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// The duration in milliseconds, rounded up, so that a wait does not end too early; at most `Int64.max`.
  package var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let perMillisecond: Int64 = 1_000_000_000_000_000
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1000)
    if isTooLong { return seconds > 0 ? .max : .min }
    let (sum, exceeds) = whole.addingReportingOverflow(
      (attoseconds + perMillisecond - 1) / perMillisecond)
    return exceeds ? .max : sum
  }
}
