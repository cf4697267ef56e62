import Foundation
import Glibc
import TestSupport
import Testing

/// A running `queue publish --json` with an open standard input.
final class Publisher {
  private let files = ScratchFolder()
  private let child: Child
  private var input: Int32

  init(_ home: TestHome, _ arguments: [String]) throws {
    // No other test's child process inherits this descriptor, so closing it ends the input.
    try #require(mkfifo(files.path("input"), 0o600) == 0)
    input = open(files.path("input"), O_RDWR | O_CLOEXEC)
    child = try Child(
      ["queue", "publish", "--json", "--home", home.path] + arguments,
      descriptors: [
        0: .reading(files.path("input")), 1: .writing(files.path("output")),
        2: .writing(files.path("errors")),
      ])
  }

  func publish(_ line: String) { _ = write(input, line + "\n", line.utf8.count + 1) }

  /// Waits until the process has printed this many reports, and returns the last one.
  @discardableResult
  func report(_ number: Int) throws -> String {
    var lines: [Substring] = []
    try eventually(errors) {
      let output = files.contents(of: "output") ?? ""
      lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      return lines.count >= number
    }
    return String(lines[number - 1])
  }

  /// Whether the process has the database of the messages open.
  var hasDatabaseOpen: Bool {
    let folder = "/proc/\(child.id)/fd"
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return numbers.contains { number in
      let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(number)")
      return path?.hasSuffix("/messaging.db") == true
    }
  }

  var errors: String { files.contents(of: "errors") ?? "" }

  func finish() -> Int32 {
    if input >= 0 { close(input) }
    input = -1
    return child.wait()
  }

  deinit { if input >= 0 { _ = finish() } }
}
