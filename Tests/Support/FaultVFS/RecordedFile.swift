import CSQLite
import FileLayer
import SystemPackage

/// An open file whose steps are logged.
final class RecordedFile {
  let base: UnsafeMutablePointer<sqlite3_file>
  let path: FilePath
  let recorder: FileRecorder

  /// "unix" synchronizes the directory with the first sync of a new log or journal.
  private var owesDirectorySync: Bool

  init(
    base: UnsafeMutablePointer<sqlite3_file>, path: FilePath, recorder: FileRecorder,
    owesDirectorySync: Bool
  ) {
    self.base = base
    self.path = path
    self.recorder = recorder
    self.owesDirectorySync = owesDirectorySync
  }

  deinit {
    UnsafeMutableRawPointer(base).deallocate()
  }

  var methods: sqlite3_io_methods { base.pointee.pMethods.pointee }

  /// Asks the recorder, then does the step.
  func perform(_ event: FileEvent, failing result: Int32, _ step: () -> Int32) -> Int32 {
    if let errno = recorder.admit(event) { return Self.result(errno, else: result) }
    return step()
  }

  func synchronize(_ flags: Int32) -> Int32 {
    let failure = SQLITE_IOERR | (4 << 8)  // SQLITE_IOERR_FSYNC
    if let errno = recorder.admit(.synchronize(path)) { return Self.result(errno, else: failure) }
    if owesDirectorySync {
      owesDirectorySync = false
      let directory = path.removingLastComponent()
      if let errno = recorder.admit(.synchronizeDirectory(directory)) {
        return Self.result(errno, else: failure)
      }
    }
    return methods.xSync(base, flags)
  }

  /// Everything but unlocking and closing fails once the recorded process is dead.
  func whileAlive(_ step: () -> Int32) -> Int32 {
    recorder.hasCrashed ? SQLITE_IOERR : step()
  }

  static func result(_ errno: Errno, else result: Int32) -> Int32 {
    errno == .noSpace ? SQLITE_FULL : result
  }
}
