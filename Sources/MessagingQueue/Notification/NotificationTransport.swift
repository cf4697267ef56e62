package import FileLayer

/// Carries notifications of a ``ChangeNotifier`` to other processes, and theirs to it.
package protocol NotificationTransport: Sendable {
  /// Wakes all listeners, in this process too.
  func notify() throws(FileError)

  /// Begins to listen: the listener gets every notification after the return.
  ///
  /// - Throws: if the system refuses, for lack of descriptors, watches or permissions.
  func listen() throws(FileError) -> any NotificationListener
}

/// One listener on a ``NotificationTransport``, for one thread.
package protocol NotificationListener: AnyObject, Sendable {
  /// Blocks until something happens, at most for `timeout`; nil waits for ever.
  func wait(upTo timeout: Duration?) -> NotificationEvent

  /// Ends the wait of another thread, or the next one.
  func interrupt()
}

/// Why a listener returned.
package enum NotificationEvent: Sendable, Hashable {
  case changed
  case timedOut
  case interrupted
  /// The transport is gone or was replaced: call `listen()` again.
  case lost
}
