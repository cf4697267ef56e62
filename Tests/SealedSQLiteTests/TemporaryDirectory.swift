import Foundation
import SystemPackage

/// Passes a new directory to a body, and removes it afterwards.
func withTemporaryDirectory<R>(_ body: (FilePath) throws -> R) throws -> R {
  let url = FileManager.default.temporaryDirectory
    .appendingPathComponent("sealed-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: url) }
  return try body(FilePath(url.path))
}
