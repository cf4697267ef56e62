/// What carries the ring of a ``ChangeBell`` to other processes, and theirs to it.
package protocol BellDevice: Sendable {
  /// Wakes everyone who listens, this process included.
  func ring() throws(BellError)

  /// Begins to listen: whoever rings after the return is heard.
  ///
  /// - Throws: where the system refuses, for want of descriptors, watches or permissions.
  func listen() throws(BellError) -> any BellListener
}

/// One listener on a ``BellDevice``, for one thread.
package protocol BellListener: AnyObject, Sendable {
  /// Blocks until something happens, at most for `timeout`; nil waits for ever.
  func wait(upTo timeout: Duration?) -> BellEvent

  /// Lets the wait of another thread, or the next one, return at once.
  func interrupt()
}

/// Why a listener returned.
package enum BellEvent: Sendable, Hashable {
  case rang
  case timedOut
  case interrupted
  /// The bell is gone or has been replaced: listen anew.
  case lost
}

/// A call to the system that was refused.
package struct BellError: Error, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
