import Foundation
import Glibc
import Synchronization
import Testing

/// The files of one daemon: its home, its socket, and the file to which its command appends.
struct Spool {
  static let password = "correct horse battery"

  let folder: ScratchFolder
  var home: String { folder.path("home") }
  var socket: String { folder.path("ingest.sock") }
  var delivered: String { folder.path("delivered") }

  /// Makes a home that opens only with the password.
  static func secured() throws -> Spool { try securedOriginal.get().copy() }

  /// Makes a home whose vault opens with the publicly known password.
  static func unsecured() throws -> Spool { try unsecuredOriginal.get().copy() }

  // Made once, because each needs key derivations. The process removes them when it ends.
  private static let originals = Mutex<[URL]>([])

  private static let securedOriginal = original { spool in
    let credentials = try spool.credentials(password)
    return try spool.datavault(
      "secure", "--new-password-file", credentials + "/messaging-password")
  }

  private static let unsecuredOriginal = original {
    try $0.datavault("queue", "publish", "elsewhere")
  }

  private static func original(
    _ make: (Spool) throws -> Outcome
  ) -> Result<Spool, any Error> {
    Result {
      let spool = Spool(folder: try ScratchFolder())
      let count = originals.withLock { originals in
        originals.append(spool.folder.url)
        return originals.count
      }
      if count == 1 { atexit { Spool.removeOriginals() } }
      let outcome = try make(spool)
      guard outcome.status == 0 else { throw DaemonEnded(errors: outcome.errors) }
      return spool
    }
  }

  private static func removeOriginals() {
    for folder in originals.withLock({ $0 }) { try? FileManager.default.removeItem(at: folder) }
  }

  private func copy() throws -> Spool {
    let spool = Spool(folder: try ScratchFolder())
    try FileManager.default.copyItem(atPath: home, toPath: spool.home)
    return spool
  }

  /// Makes a directory of credentials with this password, as systemd does.
  func credentials(_ password: String) throws -> String {
    let path = folder.path("credentials-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    _ = FileManager.default.createFile(
      atPath: path + "/messaging-password", contents: Data((password + "\n").utf8),
      attributes: [.posixPermissions: 0o600])
    return path
  }

  /// A command that appends a line `ID ATTEMPT PAYLOAD` in one write, then exits.
  var appendingScript: String {
    "line=$(cat); echo \"$MESSAGE_ID $MESSAGE_ATTEMPT $line\" >>\(delivered)"
  }
  var appendingCommand: [String] { ["/bin/sh", "-c", appendingScript] }

  /// The lines that commands have appended.
  func deliveredLines() -> [String] {
    let text = (try? String(contentsOfFile: delivered, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  /// How often each message was delivered, by its id.
  func deliveredCounts() -> [String: Int] {
    Dictionary(grouping: deliveredLines()) { String($0.prefix { $0 != " " }) }
      .mapValues(\.count)
  }

  /// Waits until the lines meet the condition.
  ///
  /// The time limit of the suite prevents hanging.
  func waitForLines(_ daemon: Daemon, until isDone: ([String]) -> Bool) throws {
    while !isDone(deliveredLines()) {
      guard daemon.isRunning else { throw DaemonEnded(errors: daemon.errors) }
      usleep(5_000)
    }
  }

  /// The number of messages in the queue, from `datavault queue stats`.
  func messageCount() throws -> Int {
    struct Report: Decodable {
      struct Channel: Decodable {
        let channel: String
        let messages: Int
      }
      let channels: [Channel]
    }
    let outcome = try datavault("queue", "stats", "--json")
    guard outcome.status == 0 else { throw DaemonEnded(errors: outcome.errors) }
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
    return report.channels.first { $0.channel == "spool" }?.messages ?? 0
  }

  struct Outcome {
    let status: Int32
    let output: String
    let errors: String
  }

  /// Runs `datavault` on the home.
  @discardableResult
  func datavault(_ arguments: String..., through wrapper: [String] = []) throws -> Outcome {
    let executable = Bundle.main.bundleURL.appendingPathComponent("datavault").path
    return try run("/usr/bin/env", wrapper + [executable] + arguments + ["--home", home])
  }

  /// Runs a program to its end.
  func run(_ executable: String, _ arguments: [String]) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    let (output, errors) = (folder.path(UUID().uuidString), folder.path(UUID().uuidString))
    for path in [output, errors] {
      _ = FileManager.default.createFile(atPath: path, contents: nil)
    }
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    try process.run()
    process.waitUntilExit()
    return Outcome(
      status: process.terminationStatus,
      output: try String(contentsOfFile: output, encoding: .utf8),
      errors: try String(contentsOfFile: errors, encoding: .utf8))
  }
}

/// A temporary folder, which `deinit` removes.
///
/// Its path is short, because socket paths must be short.
final class ScratchFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("spool-\(UUID().uuidString.prefix(13))")
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  deinit { try? FileManager.default.removeItem(at: url) }
}
