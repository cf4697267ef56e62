import Foundation
import SystemPackage

/// A temporary directory of the test, which is removed with its contents when the test ends.
final class TemporaryDirectory: Sendable {
  let path: FilePath

  init() throws {
    path = FilePath(
      FileManager.default.temporaryDirectory
        .appending(path: "datavault-files-\(UUID().uuidString)").path)
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  /// The path of a name in the directory.
  func callAsFunction(_ name: String) -> FilePath { path.appending(name) }

  /// Writes a file without the code under test.
  func put(_ contents: String, at name: String) throws {
    try Data(contents.utf8).write(to: URL(filePath: self(name).string))
  }

  /// The contents of a file, read without the code under test; nil if it does not exist.
  func contents(of name: String) -> String? {
    FileManager.default.contents(atPath: self(name).string)
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// All names in the directory, sorted.
  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path.string)
  }
}
