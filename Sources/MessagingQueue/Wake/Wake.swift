/// How often a ``ChangeBell`` has rung: read before one looks at the database, and handed to
/// ``ChangeBell/nextRing(after:in:within:)`` when nothing was found there, so that what happened in
/// between is not missed.
package struct RingCount: Sendable, Hashable, Comparable {
  let rawValue: UInt64

  package static func < (a: RingCount, b: RingCount) -> Bool { a.rawValue < b.rawValue }
}

/// Why a wait for the bell is over.
package enum Wake: Sendable, Hashable {
  /// Somebody rang: look again. There may be nothing.
  case rang
  /// The time that one wanted to wait is over.
  case timedOut
  /// The engine has stopped.
  case stopped
  /// The task that waited was cancelled.
  case cancelled
}
