import Foundation
import Glibc
import Synchronization
import TestSupport

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
    return try spool.datavault("secure", "--new-password-file", credentials + "/messaging-password")
  }

  private static let unsecuredOriginal = original {
    try $0.datavault("queue", "publish", "elsewhere")
  }

  private static func original(_ make: (Spool) throws -> Program) -> Result<Spool, any Error> {
    Result {
      let spool = Spool(folder: ScratchFolder())
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
    let spool = Spool(folder: ScratchFolder())
    try FileManager.default.copyItem(atPath: home, toPath: spool.home)
    return spool
  }

  /// Makes a directory of credentials with this password, as systemd does.
  func credentials(_ password: String) throws -> String {
    let name = "credentials-\(UUID().uuidString)"
    mkdir(folder.path(name), 0o700)
    try folder.file(name + "/messaging-password", (password + "\n").utf8)
    return folder.path(name)
  }

  /// Unlocks the vault with a directory of credentials, by default a new one, as an operator does.
  func unlock(
    with credentials: String? = nil, for time: String = "1h", through wrapper: [String] = []
  ) throws {
    let password = try (credentials ?? self.credentials(Self.password)) + "/messaging-password"
    let outcome = try datavault(
      "unlock", "messaging", "--for", time, "--password-file", password, through: wrapper)
    guard outcome.status == 0 else { throw DaemonEnded(errors: outcome.errors) }
  }

  /// A command that appends a line `ID ATTEMPT PAYLOAD` in one write, then exits.
  var appendingScript: String {
    "line=$(cat); echo \"$MESSAGE_ID $MESSAGE_ATTEMPT $line\" >>\(delivered)"
  }
  var appendingCommand: [String] { ["/bin/sh", "-c", appendingScript] }

  /// The lines that commands have appended.
  func deliveredLines() -> [String] {
    (folder.contents(of: "delivered") ?? "").split(separator: "\n").map(String.init)
  }

  /// How often each message was delivered, by its id.
  func deliveredCounts() -> [String: Int] {
    Dictionary(grouping: deliveredLines()) { String($0.prefix { $0 != " " }) }
      .mapValues(\.count)
  }

  /// Waits until the lines meet the condition.
  func waitForLines(_ daemon: Daemon, until isDone: ([String]) -> Bool) throws {
    try daemon.wait { isDone(deliveredLines()) }
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
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output))
    return report.channels.first { $0.channel == "spool" }?.messages ?? 0
  }

  /// Runs `datavault` on the home.
  @discardableResult
  func datavault(_ arguments: String..., through wrapper: [String] = []) throws -> Program {
    try Program.run(
      "/usr/bin/env", wrapper + [Program.datavault] + arguments + ["--home", home],
      environment: Program.commandEnvironment)
  }
}
