package import Foundation
internal import Synchronization
package import SystemPackage
internal import Testing

/// A temporary folder of this user alone, which `deinit` removes.
///
/// Its path is short, because socket paths must be short. What processes have written here becomes a part of ``TestLog``.
package final class ScratchFolder: Sendable {
  package let path: FilePath
  private let outputs = Mutex<[String]>([])
  private let test = Test.current?.id
  package var url: URL { URL(fileURLWithPath: path.string) }

  package init(in parent: String = NSTemporaryDirectory()) {
    var template = Array(FilePath(parent).appending("datavault-XXXXXX").string.utf8CString)
    guard let made = mkdtemp(&template) else { preconditionFailure("no folder in \(parent)") }
    path = FilePath(String(cString: made))
    TestLog.redirectsLoggers
  }

  deinit {
    for name in outputs.withLock(\.self) {
      guard let text = contents(of: name)?.suffix(4_000), !text.isEmpty else { continue }
      TestLog.note("\(name):\n\(text)", of: test)
    }
    try? FileManager.default.removeItem(atPath: path.string)
  }

  /// The path of a name in the folder.
  package func callAsFunction(_ name: String) -> FilePath { path.appending(name) }

  /// The path of a name in the folder.
  package func path(_ name: String) -> String { self(name).string }

  /// Writes a file that only its owner can read, and returns its path.
  @discardableResult
  package func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
    try Data(bytes).write(to: url.appendingPathComponent(name))
    chmod(path(name), 0o600)
    return path(name)
  }

  /// Writes a file with the usual permissions.
  package func put(_ contents: String, at name: String) throws {
    try Data(contents.utf8).write(to: url.appendingPathComponent(name))
  }

  package func bytes(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: url.appendingPathComponent(name)))
  }

  /// Opens a new file for the output of a process.
  package func writing(_ name: String) throws -> FileHandle {
    outputs.withLock { $0.append(name) }
    return try FileHandle(forWritingTo: URL(fileURLWithPath: file(name, [])))
  }

  /// Opens a new file with the input of a process.
  package func reading(_ name: String, _ bytes: [UInt8]) throws -> FileHandle {
    try FileHandle(forReadingFrom: URL(fileURLWithPath: file(name, bytes)))
  }

  /// The text of a file; nil if it does not exist.
  package func contents(of name: String) -> String? {
    FileManager.default.contents(atPath: path(name)).map { String(decoding: $0, as: UTF8.self) }
  }

  /// All names in the folder, sorted.
  package func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
  }
}
