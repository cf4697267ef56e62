internal import FileLayer
internal import Glibc
internal import SystemPackage

/// Whether a database may be replaced: asked before anything is changed, because SQLite opens a file
/// that it may not write for reading, and says so late.
enum WriteAccess {
  /// - Throws: `readOnly` when the file or its directory may not be written by this process.
  static func require(to path: FilePath) throws(SealedFileError) {
    for place in [path, path.containingDirectory] {
      guard unsafe faccessat(AT_FDCWD, place.string, W_OK, AT_EACCESS) != 0 else { continue }
      switch Errno(rawValue: errno) {
      case .permissionDenied, .readOnlyFileSystem, .notPermitted:
        throw SealedFileError(.readOnly, path: path.string, detail: "\(place) is read-only")
      default: break  // what opens it next says it better
      }
    }
  }
}
