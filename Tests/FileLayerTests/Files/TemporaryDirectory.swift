import Foundation
import SystemPackage

/// A directory of a test's own, removed with all that it holds when the test ends.
final class TemporaryDirectory: Sendable {
  let path: FilePath

  init() throws {
    path = FilePath(
      FileManager.default.temporaryDirectory
        .appending(path: "datavault-files-\(UUID().uuidString)").path)
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  /// A path inside.
  func callAsFunction(_ name: String) -> FilePath { path.appending(name) }

  /// Makes a file by other means than those under test.
  func put(_ contents: String, at name: String) throws {
    try Data(contents.utf8).write(to: URL(filePath: self(name).string))
  }

  /// What a file holds, by other means than those under test; nil when it is absent.
  func contents(of name: String) -> String? {
    FileManager.default.contents(atPath: self(name).string)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// All names inside, sorted.
  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path.string)
  }
}
