internal import Glibc
internal import SystemPackage

/// The kernel's clocks: `CLOCK_REALTIME`, `CLOCK_BOOTTIME` and `/proc/sys/kernel/random/boot_id`.
package struct SystemTimeSource: TimeSource {
  package let bootID: String

  /// Reads the boot id once.
  ///
  /// - Throws: when `/proc` is not there: without the id, times since boot mean nothing.
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

  /// The boot clock alone, which needs no boot id where nothing outlives the boot.
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
