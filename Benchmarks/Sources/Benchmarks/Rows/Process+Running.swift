import Foundation
import Glibc

extension Process {
  /// Runs the program with no signal blocked.
  ///
  /// Threads of Swift's pool block all signals, and a child process inherits that: it would not stop at an alarm, nor
  /// at SIGTERM.
  func runWithUnblockedSignals() throws {
    var none = sigset_t()
    var blocked = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &blocked)
    defer { pthread_sigmask(SIG_SETMASK, &blocked, nil) }
    try run()
  }

  /// Runs a program to its end and returns its standard output.
  ///
  /// What it says on standard error is only shown if it fails.
  static func output(of arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: arguments[0])
    process.arguments = Array(arguments.dropFirst())
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.runWithUnblockedSignals()
    let text = output.text()
    let complaint = errors.text()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchmarkError("\(arguments[0]) failed: \(complaint)")
    }
    return text
  }
}

extension Pipe {
  fileprivate func text() -> String {
    String(decoding: fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }
}
