/// The clocks, handed in wherever time decides something.
package protocol TimeSource: Sendable {
  /// The wall clock, which may jump.
  var now: UnixTime { get }

  /// Time since boot, sleep included: it never jumps, and starts anew with each ``bootID``.
  var sinceBoot: Duration { get }

  /// Names this run of the kernel.
  var bootID: String { get }
}

/// A moment on the wall clock, counted from 1970-01-01 00:00 UTC.
package struct UnixTime: Sendable, Comparable, Hashable {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  package static func < (a: UnixTime, b: UnixTime) -> Bool { a.nanoseconds < b.nanoseconds }
}
