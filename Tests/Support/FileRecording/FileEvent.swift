package import FileLayer
package import SystemPackage

/// A step that changed the disk, made a change durable, or locked a file.
package enum FileEvent: Sendable, Equatable {
  case create(FilePath)
  case write(FilePath, offset: Int64, bytes: [UInt8])
  case truncate(FilePath, byteCount: Int64)
  case changeOwner(FilePath, FileOwner)
  case synchronize(FilePath)
  case rename(FilePath, to: FilePath)
  case remove(FilePath)
  case createDirectory(FilePath)
  case synchronizeDirectory(FilePath)
  case lock(FilePath)
  case unlock(FilePath)
  /// A note of the test, such as "this commit was acknowledged".
  case mark(String)

  /// Whether a fault can occur here; notes and the release of a lock cannot fail.
  package var canFail: Bool {
    switch self {
    case .mark, .unlock: false
    default: true
    }
  }
}
