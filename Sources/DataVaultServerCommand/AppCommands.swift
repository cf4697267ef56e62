internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import Foundation
internal import VaultCrypto

/// The commands `datavaultd app ...`.
struct AppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app", abstract: "Manage applications: sets of channels with keys of their own.",
    discussion: """
      Example:
        datavaultd app add shop
      """,
    subcommands: [
      AppAddCommand.self, AppListCommand.self, AppShowCommand.self, AppSetCommand.self,
      AppRemoveCommand.self,
    ])
}

/// The command `datavaultd app add APPLICATION`.
struct AppAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add an application, and print its keys.",
    discussion: """
      Example:
        datavaultd app add shop --json

      The name never changes. An application is closed: everything needs a grant, unless --open is given. The secret \
      key gives every right: 'app show --secret' prints it again.
      """)

  @Argument(help: "The name of the new application: 1 to 32 of a-z, 0-9 and -.")
  var application: String

  @Flag(
    name: .customLong("open"),
    help: "Let everyone who knows the keys publish, subscribe and read.")
  var isOpen = false

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try await runStore(makesHome: true) { store in
      let record = try await store.addApplication(application, isOpen: isOpen)
      try await ApplicationReport(record, isBrief: true).print(
        report, store.secretKey(of: record.id))
    }
  }
}

/// The command `datavaultd app list`.
struct AppListCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List applications, with their public keys.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let records = try await runStore { try await $0.applications() }
    let found = ApplicationsReport(applications: records.map { ApplicationReport($0) })
    try report.print(found) {
      table(
        ["APPLICATION", "ID", "ACCESS", "PUBLISH KEY", "SUBSCRIBE KEY"],
        records.map {
          [$0.name, "\($0.id)", $0.isOpen ? "open" : "closed", $0.publishKey, $0.subscribeKey]
        })
    }
  }
}

/// The command `datavaultd app show APPLICATION`.
struct AppShowCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show an application: its keys, access and retention.")

  @OptionGroup var application: ApplicationArgument

  @Flag(name: .customLong("secret"), help: "Print the secret key too, which gives every right.")
  var showsSecret = false

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try await runStore { store in
      let record = try await store.application(named: application.name)
      let found = ApplicationReport(record)
      if showsSecret {
        try await found.print(report, store.secretKey(of: record.id))
      } else {
        try report.print(found) { found.text }
      }
    }
  }
}

/// The command `datavaultd app set APPLICATION`.
struct AppSetCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Change an application. Settings that no option names stay as they are.",
    discussion: """
      Example:
        datavaultd app set shop --closed --retention-days 30

      A running server takes the change within a second.
      """)

  @OptionGroup var application: ApplicationArgument

  @Flag(name: .customLong("open"), help: "Let everyone who knows the keys publish and subscribe.")
  var opens = false

  @Flag(name: .customLong("closed"), help: "Demand a grant, a token or the secret key.")
  var closes = false

  @Option(
    name: .customLong("retention-days"),
    help: ArgumentHelp("Remove messages that are older, in days: 1 to 3650.", valueName: "n"))
  var days: Int?

  @Option(
    name: .customLong("retention-bytes"),
    help: ArgumentHelp(
      "Refuse to publish while the messages have more bytes than this.", valueName: "n"))
  var byteCount: Int?

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard !opens || !closes else { throw ValidationError("give only one of --open and --closed") }
    guard opens || closes || days != nil || byteCount != nil else {
      throw ValidationError("give at least one setting")
    }
    if let days, !(1...3650).contains(days) {
      throw ValidationError("--retention-days must be 1 to 3650")
    }
  }

  func run() async throws {
    try await runStore { store in
      let record = try await store.application(named: application.name)
      let retention = try ApplicationRetention(
        maximumMinutes: days.map { $0 * 1440 } ?? record.retention.minutes,
        maximumByteCount: byteCount ?? record.retention.byteCount)
      if retention != record.retention { try await store.setRetention(retention, of: record.id) }
      if opens || closes { try await store.setOpen(opens, of: record.id) }
    }
    try confirm("changed application '\(application.name)'")
  }
}

/// The command `datavaultd app remove APPLICATION`.
struct AppRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove an application with its keys, grants, revoked tokens and channel groups.",
    discussion: """
      A running server refuses its clients within a second. The messages stay in the queue, and a new application of \
      the same name has them, unless 'datavault queue purge' deletes them.
      """)

  @OptionGroup var application: ApplicationArgument
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try confirmation.require("remove application '\(application.name)' with its keys and grants")
    try await runStore { store in
      try await store.removeApplication(store.application(named: application.name).id)
    }
    try confirm("removed application '\(application.name)'")
  }
}

/// The application that a command works on.
struct ApplicationArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The application.", valueName: "application")) var name: String
}

/// The report of `app list`.
private struct ApplicationsReport: Encodable {
  let applications: [ApplicationReport]
}

/// The report of `app show`, without the secret key.
private struct ApplicationReport: Encodable {
  let name: String
  let id: String
  let publishKey: String
  let subscribeKey: String
  // Absent in the report of `app add`, which has the keys alone.
  let open: Bool?
  let created: Date?
  let retentionMinutes: Int?
  let retentionBytes: Int?

  init(_ record: ApplicationRecord, isBrief: Bool = false) {
    name = record.name
    id = "\(record.id)"
    publishKey = record.publishKey
    subscribeKey = record.subscribeKey
    open = isBrief ? nil : record.isOpen
    created = isBrief ? nil : record.created
    retentionMinutes = isBrief ? nil : record.retention.minutes
    retentionBytes = isBrief ? nil : record.retention.byteCount
  }

  var text: String {
    var text = """
      application    \(name) (\(id))
      publish key    \(publishKey)
      subscribe key  \(subscribeKey)

      """
    if let open { text += "access         \(open ? "open" : "closed")\n" }
    if let created { text += "created        \(created.formatted(.iso8601))\n" }
    if let retentionMinutes, let retentionBytes {
      let age = OutputDescriptor.age(seconds: Int64(retentionMinutes) * 60)
      let size = OutputDescriptor.size(byteCount: retentionBytes, unit: " bytes")
      text += "retention      \(age), \(size)\n"
    }
    return text
  }

  /// Prints the report, and last the secret key, from locked memory without a copy.
  func print(_ options: ReportOptions, _ secretKey: borrowing SecretBytes) throws {
    let output = OutputDescriptor.standardOutput
    // A secret key has no character that JSON escapes.
    let beginning =
      options.isJSON
      ? try ReportOptions.encoded(self).dropLast() + Array(",\"secretKey\":\"".utf8)
      : Array("\(text)secret key     ".utf8)
    try output.writeAll(beginning)
    try output.writeAll(secretKey)
    try output.writeAll(Array((options.isJSON ? "\"}\n" : "\n").utf8))
  }
}
