internal import Foundation
internal import Glibc
internal import Logging
internal import Testing

/// What each test does: logs, programs, seeds and clocks.
///
/// `make test` prints it for the tests that fail. The variable `DATAVAULT_TEST_LOG` names the file. Without it, nothing is kept.
package enum TestLog {
  private static let file: Int32? = ProcessInfo.processInfo.environment["DATAVAULT_TEST_LOG"].map {
    open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
  }

  /// Sends what libraries log to the file, from now on.
  static let redirectsLoggers: Void = {
    if file != nil { LoggingSystem.bootstrap { _ in TestLogHandler() } }
  }()

  /// Adds a text to the running test.
  package static func note(_ text: @autoclosure () -> String) {
    note(text(), of: Test.current?.id)
  }

  static func note(_ text: @autoclosure () -> String, of test: Test.ID?) {
    guard let file, let test else { return }
    let text = text()
    if text.isEmpty { return }
    // A line that begins with a tab continues the one before it.
    let lines = text.split(separator: "\n").joined(separator: "\n\t")
    let bytes = Array("\(test)\t\(lines)\n".utf8)
    _ = write(file, bytes, bytes.count)
  }
}

/// Adds lines to the test in which the logger was made: engines and servers also log on threads of no test.
private struct TestLogHandler: LogHandler {
  private let test = Test.current?.id
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.info

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
    let pairs = metadata.map { " \($0)=\($1)" }.sorted().joined()
    TestLog.note("\(event.level): \(event.message)\(pairs)", of: test ?? Test.current?.id)
  }
}
