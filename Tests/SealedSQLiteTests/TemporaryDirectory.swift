import Foundation
import SystemPackage

/// Lends a directory that is removed afterwards.
func withTemporaryDirectory<R>(_ body: (FilePath) throws -> R) throws -> R {
  let url = FileManager.default.temporaryDirectory
    .appendingPathComponent("sealed-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: url) }
  return try body(FilePath(url.path))
}
