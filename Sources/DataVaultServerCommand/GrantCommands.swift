internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import Foundation

/// The commands `datavaultd grant ...`.
struct GrantCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "grant",
    abstract: "Manage grants: what everyone, an auth key, a user or a role can do.",
    discussion: """
      Example:
        datavaultd grant shop --channel orders --auth-key-file key.txt --read

      A running server takes each change within a second.
      """,
    subcommands: [GrantAddCommand.self, GrantListCommand.self, GrantRemoveCommand.self],
    defaultSubcommand: GrantAddCommand.self)
}

/// The command `datavaultd grant [add] APPLICATION`.
struct GrantAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Grant rights to everyone, an auth key, a user or a role.",
    discussion: """
      Examples:
        datavaultd grant shop --channel news --channel 'prices.*' --read
        datavaultd grant shop --channel orders --auth-key-file key.txt --read --ttl 60
        datavaultd grant shop --channel orders --role staff --read

      Without an auth key, a user or a role, the grant is for everyone. It replaces an earlier one for the same holder and the same \
      name. It is on the disk when the command ends.
      """)

  @OptionGroup var application: ApplicationArgument

  @Option(
    name: .customLong("channel"),
    help: ArgumentHelp(
      "A channel, or a pattern such as 'news.*'. Can be repeated.", valueName: "channel"))
  var channels: [String] = []

  @Option(
    name: .customLong("group"),
    help: ArgumentHelp(
      "A channel group, or ':' for all groups. Can be repeated.", valueName: "group"))
  var groups: [String] = []

  @Option(
    help: ArgumentHelp(
      "A consumer of the channel: its leases, changes and dead letters.", valueName: "name"))
  var consumer: String?

  @Flag(
    name: .customLong("whole-application"),
    help: "Every channel, presence, group and consumer of the application.")
  var isForWholeApplication = false

  @OptionGroup var authKey: AuthKeyOptions

  @Option(help: ArgumentHelp("A user of the application.", valueName: "user"))
  var user: String?

  @Option(help: ArgumentHelp("A role, which several users can have.", valueName: "role"))
  var role: String?

  @OptionGroup var rights: RightsOptions

  @Option(
    name: .customLong("ttl"),
    help: ArgumentHelp(
      "The lifetime in minutes: 1 to 525600. Default: no end.", valueName: "minutes"))
  var minutes: Int?

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard isForWholeApplication || !channels.isEmpty || !groups.isEmpty else {
      throw ValidationError("give at least one of --channel, --group and --whole-application")
    }
    guard consumer == nil || channels.count == 1 && groups.isEmpty && !isForWholeApplication else {
      throw ValidationError("--consumer needs exactly one --channel, and nothing else to grant on")
    }
    guard [authKey.areGiven, user != nil, role != nil].count(where: { $0 }) <= 1 else {
      throw ValidationError("give only one of an auth key, --user and --role")
    }
    try SecretRules.check(credentials.sources + authKey.sources)
  }

  func run() async throws {
    let scopes = try scopes()
    try await runStore { store in
      let record = try await store.application(named: application.name)
      let holder = try await holder(in: store, of: record)
      let grants = try scopes.map { scope in
        let key = Grant.Key(scope, of: record.id, holder: holder)
        return try Grant(rights.rights, on: key, minutes: minutes ?? 0, start: Date())
      }
      try await store.put(grants)
      try GrantsReport(record, grants).print(report)
    }
  }

  private func holder(
    in store: ApplicationStore, of record: ApplicationRecord
  ) async throws -> GrantHolder {
    // A mistyped user would get nothing, and a later one of that name would.
    if let user { return .user(try await store.user(Name(user), of: record.id).name) }
    if let role { return .role(try Name(role)) }
    return try await authKey.hash(in: store, of: record, isNew: true).map { .authKey($0) }
      ?? .everyone
  }

  private func scopes() throws -> [Scope] {
    let channels = try channels.map { try ChannelName($0) }
    if let consumer { return try channels.map { .consumer(try Name(consumer), of: $0) } }
    return channels.map { .channel($0) } + (try groups.map { .group(try GroupName($0)) })
      + (isForWholeApplication ? [.application] : [])
  }
}

/// The command `datavaultd grant list APPLICATION`.
struct GrantListCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the grants of an application.",
    discussion: """
      Auth keys are stored as hashes, and the list shows the beginning of each. With an auth key, it lists the grants \
      for that key alone.
      """)

  @OptionGroup var application: ApplicationArgument
  @OptionGroup var authKey: AuthKeyOptions
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try SecretRules.check(credentials.sources + authKey.sources) }

  func run() async throws {
    try await runStore { store in
      let record = try await store.application(named: application.name)
      let hash = try await authKey.hash(in: store, of: record)
      let grants = try await store.grants(of: record.id).filter { grant in
        hash.map { grant.key.holder == .authKey($0) } ?? true
      }
      try GrantsReport(record, grants).print(report)
    }
  }
}

/// The command `datavaultd grant remove APPLICATION GRANT`.
struct GrantRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a grant.",
    discussion: "A running server ends within a second what only this grant allowed.")

  @OptionGroup var application: ApplicationArgument

  @Argument(help: "The grant as 'grant list' shows it: 16 digits.") var grant: GrantID

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try confirmation.require("remove grant '\(grant)' of application '\(application.name)'")
    try await runStore { store in
      try await store.removeGrant(grant, of: store.application(named: application.name).id)
    }
    try confirm("removed grant '\(grant)' of application '\(application.name)'")
  }
}

extension GrantID: ExpressibleByArgument {}

/// The report of `grant list` and `grant add`.
private struct GrantsReport: Encodable {
  struct Entry: Encodable {
    struct Holder: Encodable {
      let kind: String
      /// The first digits of an auth key's hash.
      var hash: String?
      var name: String?

      init(_ holder: GrantHolder) {
        switch holder {
        case .everyone: kind = "everyone"
        case .authKey(let hash): (kind, self.hash) = ("authKey", "\(hash)")
        case .user(let name): (kind, self.name) = ("user", name.text)
        case .role(let name): (kind, self.name) = ("role", name.text)
        }
      }
    }

    struct Covered: Encodable {
      let kind: String
      var name: String?
      /// The channel of a consumer.
      var channel: String?

      init(_ scope: Scope) {
        switch scope {
        case .application: kind = "application"
        case .channel(let name): (kind, self.name) = ("channel", name.text)
        case .group(let name): (kind, self.name) = ("group", name.text)
        case .consumer(let name, let channel):
          (kind, self.name, self.channel) = ("consumer", name.text, channel.text)
        case .user(let name): (kind, self.name) = ("user", name.text)
        }
      }
    }

    let grant: String
    let holder: Holder
    let scope: Covered
    let rights: [String]
    let granted: Date
    /// Absent for a grant without end.
    let until: Date?

    init(_ grant: Grant) throws {
      self.grant = try GrantID(grant.key).description
      holder = Holder(grant.key.holder)
      scope = Covered(grant.key.scope)
      rights = grant.rights.names
      granted = grant.start
      until = grant.end
    }
  }

  let application: String
  let grants: [Entry]

  private let rows: [[String]]

  private enum CodingKeys: CodingKey { case application, grants }

  init(_ record: ApplicationRecord, _ grants: [Grant]) throws {
    application = record.name
    self.grants = try grants.map { try Entry($0) }
    rows = zip(self.grants, grants).map { entry, grant in
      [
        entry.grant, "\(grant.key.holder)", "\(grant.key.scope)", "\(grant.rights)",
        grant.end?.formatted(.iso8601) ?? "-",
      ]
    }
  }

  func print(_ options: ReportOptions) throws {
    try options.print(self) { table(["GRANT", "HOLDER", "ON", "RIGHTS", "UNTIL"], rows) }
  }
}
