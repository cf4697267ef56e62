import Foundation
import Glibc
import TestSupport

/// A running daemon of `Examples`, with its output in a file and the test as its service manager.
///
/// Other threads only ask whether it runs.
final class Daemon: @unchecked Sendable {
  /// The built program, in the directory of the test bundle.
  static let executable = Program.built("SpoolDaemon")

  private let process = Process()
  private let spool: Spool
  private let reports: NotifySocket
  private let errorFile: String
  private let outputFile: String

  /// Starts `SpoolDaemon`.
  ///
  /// - Parameters:
  ///   - options: replace the default options, which are for quick tests.
  ///   - credentials: the directory that systemd would pass in `$CREDENTIALS_DIRECTORY`.
  convenience init(
    _ spool: Spool, _ options: [String] = [], command: [String]? = nil, credentials: String? = nil,
    through wrapper: [String] = []
  ) throws {
    let place = ["--home", spool.home, "--socket", spool.socket, "--retry-delay", "0.01"]
    try self.init(
      spool,
      running: wrapper + [Self.executable] + place + options + ["--"]
        + (command ?? spool.appendingCommand), credentials: credentials)
  }

  /// Starts the daemon of the tutorial.
  convenience init(jobsIn spool: Spool) throws {
    try self.init(
      spool, running: [Program.built("Jobs"), spool.home, spool.socket], credentials: nil)
  }

  private init(_ spool: Spool, running arguments: [String], credentials: String?) throws {
    self.spool = spool
    reports = try NotifySocket(spool.folder.path("notify-\(UUID().uuidString.prefix(8))"))
    errorFile = "errors-\(UUID().uuidString)"
    outputFile = "output-\(UUID().uuidString)"
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    var environment = Program.commandEnvironment
    environment["NOTIFY_SOCKET"] = reports.path
    environment["CREDENTIALS_DIRECTORY"] = credentials
    process.environment = environment
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try spool.folder.writing(outputFile)
    process.standardError = try spool.folder.writing(errorFile)
    try process.run()
  }

  /// Waits for a report of the daemon, such as `READY=1`.
  ///
  /// It throws if the daemon ends.
  @discardableResult
  func wait(for report: String) throws -> Daemon {
    try eventually("\(report): \(errors)") {
      if let next = reports.next(withinMilliseconds: 50) { return next.hasPrefix(report) }
      guard isRunning else { throw DaemonEnded(errors: errors) }
      return false
    }
    return self
  }

  /// Waits until the condition is met.
  ///
  /// It throws if the daemon ends.
  func wait(until isMet: () throws -> Bool) throws {
    try eventually(errors) {
      if try isMet() { return true }
      guard isRunning else { throw DaemonEnded(errors: errors) }
      return false
    }
  }

  /// Waits until the daemon delivers messages.
  func whenDelivering() throws -> Daemon { try wait(for: "STATUS=delivering") }

  /// The daemon's output on standard error.
  var errors: String { spool.folder.contents(of: errorFile) ?? "" }
  /// The daemon's output on standard output.
  var output: String { spool.folder.contents(of: outputFile) ?? "" }
  var isRunning: Bool { process.isRunning }

  func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Kills the daemon and its running commands with SIGKILL, as systemd kills a service.
  func killEverything() {
    // Stopped first, so that it starts no further command.
    send(SIGSTOP)
    for child in children { kill(-child, SIGKILL) }
    send(SIGKILL)
  }

  /// The child processes: proc(5), `/proc/PID/task/TID/children`.
  private var children: [pid_t] {
    let tasks = "/proc/\(process.processIdentifier)/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return threads.flatMap { thread in
      let text = (try? String(contentsOfFile: "\(tasks)/\(thread)/children", encoding: .utf8)) ?? ""
      return text.split(separator: " ").compactMap { pid_t($0) }
    }
  }

  /// Waits for the end and returns the exit code, or 128 plus the signal that ended the daemon.
  func waitForEnd() -> Int32 {
    process.waitUntilExit()
    let status = process.terminationStatus
    return process.terminationReason == .uncaughtSignal ? 128 + status : status
  }

  /// Sends SIGTERM and returns the exit code.
  @discardableResult
  func stop() -> Int32 {
    send(SIGTERM)
    return waitForEnd()
  }

  deinit {
    if process.isRunning {
      send(SIGKILL)
      process.waitUntilExit()
    }
  }
}

/// A daemon ended unexpectedly.
struct DaemonEnded: Error {
  let errors: String
}
