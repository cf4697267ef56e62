internal import ArgumentParser
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
      the vault's file can change it.
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let home = try home.home()
    let vault = try await Vault.get(vault.id(), in: home.store)
    let status = StatusReport(
      vault.id, try await vault.status(), session: try await home.liveSession(of: vault.id))
    try report.print(status) { status.text }
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

  init(_ id: VaultID, _ status: VaultStatus, session: VaultSession?) {
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
      session.map { "session    until \($0.until), for \($0.remainingSeconds) s" }
        ?? "session    none")
    lines.append("opened     \(lastOpening ?? "not known")")
    let wait = retryAfterSeconds.map { ": no attempt is taken for \($0) s" } ?? ""
    lines.append("failures   \(failedAttempts) since then\(wait)")
    if retryLimit > 0 {
      lines.append("deletion   after more than \(retryLimit) wrong attempts in a row")
    }
    return lines.map { "\($0)\n" }.joined()
  }
}
