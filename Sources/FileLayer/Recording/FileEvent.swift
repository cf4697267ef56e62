package import SystemPackage

/// One step that changed, or was meant to make durable, something on disk, or ordered such steps.
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
  /// A note of the test's own: "this commit was acknowledged".
  case mark(String)

  /// Whether a fault may strike here; notes and the release of a lock cannot fail.
  package var mayFail: Bool {
    switch self {
    case .mark, .unlock: false
    default: true
    }
  }
}
