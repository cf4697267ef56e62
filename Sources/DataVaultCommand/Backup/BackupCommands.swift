internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import Foundation
internal import MessagingQueue
internal import SystemPackage
internal import VaultedDatabase

/// The command `datavault backup BACKUP`.
struct BackupCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Back up the vaults and the queue while they are in use.",
    discussion: """
      Examples:
        datavault backup /backup/$(date +%F)
        datavault restore /backup/2026-11-23 /srv/datavault

      The backup has all vaults, and the messages with the tables of your own programs as of one \
      moment. It stays encrypted: the passwords of today open it. The command reads the backup \
      again before it ends. Until the messages are copied, 'secure', 'queue rekey' and 'queue \
      salvage' fail with 75.
      """)

  @Argument(help: "The new directory. It must not exist, or be empty.", completion: .directory)
  var backup: String
  @Flag(help: "Omit SQLite's check of the copy's contents.") var quick = false
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let path = try FilePath.newDirectory(backup, "BACKUP")
    let home = try home()
    let ids = try await Vault.list(in: home.store)
    guard try !ids.isEmpty || home.hasDatabase() else {
      throw CommandFailure(
        .notFound, "there is nothing to back up in \(home.path)", hint: "check --home")
    }
    let vault = ids.contains(.messaging) ? try await open(.messaging) : nil
    let line = ProgressLine("backing up")
    defer { line.clear() }
    let contents = try await HomeBackup.make(
      of: home, vault: vault, at: path, checksContents: !quick, progress: { line.show($0) })
    line.clear()
    if contents.discardedLogFrameCount > 0 {
      StandardError.warn(
        "the last \(contents.discardedLogFrameCount) frames of the queue's log were torn or damaged, and "
          + "are left out: messages can be missing")
    }
    let findings = BackupReport(path, contents)
    try report.print(findings) { findings.text("backed up \(home.path) to \(path)") }
  }
}

/// The command `datavault verify-backup BACKUP`.
struct VerifyBackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify-backup",
    abstract: "Prove that a backup opens and that all of it is intact.",
    discussion: """
      The command reads every vault, every page and every row, and changes nothing. It asks for the \
      password, or takes another secret of the messaging vault. It fails with 65 if it finds an \
      error. Wrong passwords are not counted.
      """)

  @Argument(help: "A directory written by 'datavault backup'.", completion: .directory)
  var backup: String
  @Flag(help: "Omit SQLite's check of the contents.") var quick = false
  @OptionGroup var report: ReportOptions
  @OptionGroup var credentials: CredentialOptions
  @OptionGroup var level: OutputLevelOptions

  func run() async throws {
    let backup = HomeBackup(try FilePath.absolute(backup, "BACKUP"))
    let vault = try await credentials.openMessaging(in: backup)
    let line = ProgressLine("verifying")
    defer { line.clear() }
    let contents = try await backup.verify(
      vault: vault, checksContents: !quick, progress: { line.show($0) })
    line.clear()
    let findings = BackupReport(backup.path, contents)
    try report.print(findings) {
      findings.verification?.text(isRolledBack: contents.messages?.isRolledBack == true)
        ?? findings.text("\(backup.path) is intact")
    }
    guard contents.isClean else {
      throw CommandFailure(
        .badData, "the backup \(backup.path) is damaged", hint: "use an older backup")
    }
  }
}

/// The command `datavault restore BACKUP NEW-HOME`.
struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Make a new home from a backup. Never overwrites a home.",
    discussion: """
      Example:
        datavault restore /backup/2026-11-23 /srv/datavault

      The passwords of the backup open the new home. Messages that were acknowledged after the \
      backup are delivered again. Messages that were published after it are missing. The command \
      verifies the new home before it gives it its name.
      """)

  @Argument(help: "A directory written by 'datavault backup'.", completion: .directory)
  var backup: String
  @Argument(
    help: "The new home. It must not exist, or be an empty directory.", completion: .directory)
  var newHome: String
  @Flag(help: "Omit SQLite's check of the contents.") var quick = false
  @OptionGroup var report: ReportOptions
  @OptionGroup var credentials: CredentialOptions
  @OptionGroup var level: OutputLevelOptions

  func run() async throws {
    let backup = HomeBackup(try FilePath.absolute(backup, "BACKUP"))
    let path = try FilePath.newDirectory(newHome, "NEW-HOME")
    let vault = try await credentials.openMessaging(in: backup)
    let line = ProgressLine("restoring")
    defer { line.clear() }
    let contents = try await backup.restore(
      to: path, vault: vault, checksContents: !quick, progress: { line.show($0) })
    line.clear()
    let findings = BackupReport(path, contents)
    try report.print(findings) { findings.text("restored \(backup.path) to \(path)") }
  }
}

extension FilePath {
  /// The path of a directory to make, checked before the command asks for a password.
  fileprivate static func newDirectory(_ text: String, _ argument: String) throws -> FilePath {
    let path = try absolute(text, argument).lexicallyNormalized()
    try DataVaultHome(path).requireFree()
    return path
  }
}

extension CredentialOptions {
  /// The messaging vault of a backup, unlocked; nil if it has none.
  fileprivate func openMessaging(in backup: HomeBackup) async throws -> Vault? {
    guard try await Vault.exists(.messaging, in: backup.store) else {
      guard !areGiven else {
        throw CommandFailure(
          .notFound, "there is no vault 'messaging' to open in \(backup.path)",
          hint: "check the path; a backup of a home without messages is read without a secret")
      }
      return nil
    }
    return try await open(.messaging, in: DataVaultHome(backup.path, store: backup.store))
  }
}

/// The report of `backup`, `verify-backup` and `restore`.
private struct BackupReport: Encodable {
  let directory: String
  let isClean: Bool
  let vaults: Int
  /// Absent if the home has no messages.
  let messages: Int?
  let commitNumber: Int64?
  /// The last timetoken that was given; absent before the first message.
  let lastTimetoken: String?
  /// The time of that timetoken.
  let lastPublished: Date?
  /// Frames of the home's log that were torn or damaged, and are not in the backup; absent if there are none.
  let discardedLogFrames: Int?
  /// The faults; absent if there are none.
  let verification: QueueVerificationReport?

  init(_ path: FilePath, _ contents: HomeBackup.Contents) {
    directory = path.string
    isClean = contents.isClean
    vaults = contents.vaultCount
    messages = contents.messages?.messages?.messageCount
    commitNumber = contents.state?.commitNumber
    lastTimetoken = contents.state?.lastTimetoken?.description
    lastPublished = contents.state?.lastTimetoken?.date
    discardedLogFrames =
      contents.discardedLogFrameCount > 0 ? contents.discardedLogFrameCount : nil
    verification = contents.messages.flatMap { messages in
      messages.isClean
        ? nil : QueueVerificationReport(file: path.appending("messaging.db").string, messages)
    }
  }

  func text(_ head: String) -> String {
    var lines = [head.onOneLine, "vaults     \(vaults)"]
    if let messages { lines.append("messages   \(messages)") }
    if let commitNumber { lines.append("commit     \(commitNumber)") }
    if let lastTimetoken { lines.append("timetoken  \(lastTimetoken)") }
    if let discardedLogFrames { lines.append("discarded  \(discardedLogFrames) frames of the log") }
    return lines.map { "\($0)\n" }.joined()
  }
}
