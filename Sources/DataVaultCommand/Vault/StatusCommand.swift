internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import Foundation
internal import VaultCrypto
internal import VaultedDatabase

/// The command `datavault status VAULT`.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show a vault's public information.",
    discussion: """
      The command needs no password. The information is not authenticated: anyone who can write \
      the vault's file can change it. It names the processes that have the messages open, or wait \
      for an unlock.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let home = try home.home()
    let vault = try await Vault.get(vault.id(), in: home.store)
    let (processes, problems) = try await processes(of: vault.id, in: home)
    for problem in problems { StandardError.warn(problem) }
    let status = StatusReport(
      vault.id, try await vault.status(), session: try await home.liveSession(of: vault.id),
      processes: processes)
    try report.print(status) { status.text }
  }

  /// A directory of sockets that is refused must not hide the rest of the status.
  private func processes(
    of id: VaultID, in home: DataVaultHome
  ) async throws -> (processes: [SessionProcess], problems: [String]) {
    do throws(VaultError) {
      return try await SessionProcess.survey(id, in: home.store)
    } catch {
      return ([], ["the processes of the home are not known: \(error)"])
    }
  }
}

/// The report of `status`.
private struct StatusReport: Encodable {
  struct Database: Encodable {
    let id: String
    let state: String
  }

  struct Slot: Encodable {
    let kind: String
    let name: String?
    let iterationCount: Int?
  }

  struct Session: Encodable {
    /// RFC 3339.
    let until: String
    /// Whole seconds, rounded up.
    let remainingSeconds: Int
  }

  struct RunningProcess: Encodable {
    let pid: Int
    /// `serving` or `waiting`.
    let state: String
    /// RFC 3339.
    let since: String
    /// Whole seconds, rounded up; absent if the process holds no session of its own.
    let sessionSeconds: Int?
  }

  let vault: String
  let formatVersion: Int
  let secured: Bool
  let database: Database?
  let slots: [Slot]
  /// RFC 3339; absent if unknown.
  let lastOpening: String?
  let failedAttempts: Int
  /// Whole seconds, rounded up; absent if the vault accepts an attempt now.
  let retryAfterSeconds: Int?
  let retryLimit: Int
  /// Absent if no session opens the vault.
  let session: Session?
  /// The processes with a session socket in the home.
  let processes: [RunningProcess]

  init(
    _ id: VaultID, _ status: VaultStatus, session: VaultSession?, processes: [SessionProcess]
  ) {
    self.processes = processes.map {
      RunningProcess(
        pid: Int($0.processID),
        state: !$0.isServing
          ? "waiting" : $0.isServingWithoutSession ? "servingWithoutSession" : "serving",
        since: Self.text(sinceEpoch: $0.since),
        sessionSeconds: $0.sessionRemaining.map { Int(($0 / .seconds(1)).rounded(.up)) })
    }
    vault = id.rawValue
    formatVersion = status.formatVersion
    secured = status.isSecured
    database = status.binding.map {
      Database(id: $0.databaseID.hexadecimal, state: $0.state.rawValue)
    }
    slots = status.slots.map {
      Slot(kind: $0.kind.description, name: $0.name, iterationCount: $0.iterationCount)
    }
    lastOpening = status.lastOpening.map(Self.text)
    failedAttempts = status.failedAttemptCount
    retryAfterSeconds =
      status.retryDelay > .zero ? Int((status.retryDelay / .seconds(1)).rounded(.up)) : nil
    retryLimit = status.retryLimit
    self.session = session.flatMap { session in
      let seconds = session.remaining / .seconds(1)
      guard seconds > 0 else { return nil }
      return Session(
        until: Date(timeIntervalSinceNow: seconds).formatted(.iso8601),
        remainingSeconds: Int(seconds.rounded(.up)))
    }
  }

  private static func text(sinceEpoch moment: Duration) -> String {
    Date(timeIntervalSince1970: moment / .seconds(1)).formatted(.iso8601)
  }

  private static func age(_ seconds: Int) -> String {
    OutputDescriptor.age(seconds: Int64(seconds), unit: " s")
  }

  var text: String {
    var lines = [
      "vault      \(vault)",
      "format     \(formatVersion)",
      secured ? "secured    yes" : "secured    no: opens with the publicly known password",
      "database   \(database.map { "\($0.id) (\($0.state))" } ?? "none")",
    ]
    for slot in slots {
      let name = slot.name.map { " \($0.onOneLine)" } ?? ""
      let count = slot.iterationCount.map { ", \($0) iterations" } ?? ""
      lines.append("opens by   \(slot.kind)\(name)\(count)")
    }
    lines.append(
      session.map { "session    until \($0.until), for \(Self.age($0.remainingSeconds))" }
        ?? "session    none")
    lines.append("opened     \(lastOpening ?? "not known")")
    let wait = retryAfterSeconds.map { ": no attempt is taken for \(Self.age($0))" } ?? ""
    lines.append("failures   \(failedAttempts) since then\(wait)")
    for process in processes {
      let session = process.sessionSeconds.map { ", with a session for \(Self.age($0))" } ?? ""
      let state =
        process.state == "servingWithoutSession" ? "serving without a session" : process.state
      lines.append("process    \(process.pid), \(state) since \(process.since)\(session)")
    }
    if retryLimit > 0 {
      lines.append("deletion   after more than \(retryLimit) wrong attempts in a row")
    }
    return lines.map { "\($0)\n" }.joined()
  }
}
