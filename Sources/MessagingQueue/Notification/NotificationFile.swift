internal import FileLayer
internal import Glibc
package import SystemPackage

/// What carries the ring of a ``ChangeNotifier`` to other processes, and theirs to it.
package protocol NotificationTransport: Sendable {
  /// Wakes everyone who listens, this process included.
  func notify() throws(NotificationError)

  /// Begins to listen: whoever rings after the return is heard.
  ///
  /// - Throws: where the system refuses, for want of descriptors, watches or permissions.
  func listen() throws(NotificationError) -> any NotificationListener
}

/// One listener on a ``NotificationTransport``, for one thread.
package protocol NotificationListener: AnyObject, Sendable {
  /// Blocks until something happens, at most for `timeout`; nil waits for ever.
  func wait(upTo timeout: Duration?) -> BellEvent

  /// Lets the wait of another thread, or the next one, return at once.
  func interrupt()
}

/// Why a listener returned.
package enum BellEvent: Sendable, Hashable {
  case changed
  case timedOut
  case interrupted
  /// The notifier is gone or has been replaced: listen anew.
  case lost
}

/// A call to the system that was refused.
package struct NotificationError: Error, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// A notifier beside the database: an empty file that is rung by being opened for writing and closed.
///
/// Nothing is written, so that ringing costs no sync and no space, works on a full disk and tells
/// nobody anything. inotify(7) reports the closing, `IN_CLOSE_WRITE`, to every process that watches.
/// The write-ahead log cannot serve: it is written before the commit is visible, and the sync that
/// makes it so raises no event.
///
/// The file is looked up by its name at each ring, and made where it is missing, with the mode and
/// the owner of the database: whoever may write the one may ring the other.
package struct NotificationFile: NotificationTransport {
  private let path: FilePath
  private let database: FilePath

  /// The notifier of the database at `path`: the same name with `-notifier` behind it.
  package init(besideDatabase path: FilePath) {
    database = path
    self.path = FilePath(path.string + "-notify")
  }

  package func notify() throws(NotificationError) {
    let descriptor = try open()
    // The event is the closing.
    _ = close(descriptor.rawValue)
  }

  package func listen() throws(NotificationError) -> any NotificationListener {
    try notify()
    return try InotifyListener(path)
  }

  private func open() throws(NotificationError) -> FileDescriptor {
    do throws(FileError) {
      return try OwnFile.open(path, .notification, for: .write)
    } catch {
      guard error.errno == .noSuchFileOrDirectory else {
        throw NotificationError(error.description)
      }
    }
    do throws(FileError) {
      let created = try OwnFile.create(path, permissions: .ownerReadWrite)
      // Only what this call has made: a file that somebody puts there first must not get another owner.
      resembleDatabase(created.rawValue)
      return created
    } catch {
      guard error.errno == .fileExists else { throw NotificationError(error.description) }
    }
    return try openOthers()
  }

  /// The notifier that another process has made in between.
  private func openOthers() throws(NotificationError) -> FileDescriptor {
    do throws(FileError) {
      return try OwnFile.open(path, .notification, for: .write)
    } catch {
      throw NotificationError(error.description)
    }
  }

  /// A notifier that root made must not shut out the daemon that the database belongs to.
  private func resembleDatabase(_ descriptor: CInt) {
    var status = stat()
    guard unsafe lstat(database.string, &status) == 0 else { return }
    if geteuid() == 0 { _ = fchown(descriptor, status.st_uid, status.st_gid) }
    _ = fchmod(descriptor, status.st_mode & 0o666)
  }
}
