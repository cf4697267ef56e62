internal import Glibc
package import SystemPackage

extension FileSystem {
  /// Takes the lock that ``lock(_:wait:)`` takes, and waits for it no longer than this.
  ///
  /// flock(2) knows no limit, so it is asked again and again: after 1 ms first, at most 16 ms later.
  ///
  /// - Returns: nil when somebody still holds it then.
  package func lock(_ path: FilePath, patience: Duration) throws(FileError) -> FileLock? {
    let deadline = ContinuousClock.now + patience
    var pause = Duration.milliseconds(1)
    while true {
      if let lock = try lock(path, wait: false) { return lock }
      let remaining = deadline - ContinuousClock.now
      guard remaining > .zero else { return nil }
      var time = timespec()
      time.tv_nsec = Int(min(pause, remaining).components.attoseconds / 1_000_000_000)
      unsafe nanosleep(&time, nil)
      pause = min(pause * 2, .milliseconds(16))
    }
  }
}
