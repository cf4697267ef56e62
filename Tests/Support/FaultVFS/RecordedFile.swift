import CSQLite
import FileLayer
import FileRecording
import Glibc
import SystemPackage

/// An open file whose steps are recorded, and fail as those of "unix" fail.
///
/// Only a write has a result code for a full disk. A sync reports one by `errno`.
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

  deinit { UnsafeMutableRawPointer(base).deallocate() }

  var methods: sqlite3_io_methods { base.pointee.pMethods.pointee }

  /// Asks the recorder, and performs the step if the recorder admits it.
  func perform(_ event: FileEvent, failing result: Int32, _ step: () -> Int32) -> Int32 {
    recorder.admit(event) == nil ? step() : result
  }

  /// Writes bytes; on a full disk the first half is written nevertheless.
  func write(_ source: UnsafeRawPointer?, _ byteCount: Int32, _ offset: Int64) -> Int32 {
    let bytes = Array(UnsafeRawBufferPointer(start: source, count: Int(byteCount)))
    switch recorder.admit(.write(path, offset: offset, bytes: bytes)) {
    case nil:
      return methods.xWrite(base, source, byteCount, offset)
    case .some(.noSpace):
      _ = methods.xWrite(base, source, byteCount / 2, offset)
      return SQLITE_FULL
    default:
      return SQLITE_IOERR | (3 << 8)  // SQLITE_IOERR_WRITE
    }
  }

  func read(_ target: UnsafeMutableRawPointer?, _ byteCount: Int32, _ offset: Int64) -> Int32 {
    if recorder.admitRead() != nil { return SQLITE_IOERR | (1 << 8) }  // SQLITE_IOERR_READ
    return methods.xRead(base, target, byteCount, offset)
  }

  func synchronize(_ flags: Int32) -> Int32 {
    var events = [FileEvent.synchronize(path)]
    if owesDirectorySync { events.append(.synchronizeDirectory(path.removingLastComponent())) }
    for event in events {
      if let reason = recorder.admit(event) {
        errno = reason.rawValue
        return SQLITE_IOERR | (4 << 8)  // SQLITE_IOERR_FSYNC
      }
      owesDirectorySync = false
    }
    return methods.xSync(base, flags)
  }

  /// Performs a step unless the recorded process has crashed; unlocking and closing always work.
  func whileAlive(_ step: () -> Int32) -> Int32 { recorder.hasCrashed ? SQLITE_IOERR : step() }
}
