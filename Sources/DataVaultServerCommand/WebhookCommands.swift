internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import Foundation

/// The commands `datavaultd webhook ...`.
struct WebhookCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "webhook", abstract: "Manage webhooks, which tell a server of Pusher's events.",
    discussion: """
      Example:
        datavaultd webhook add shop https://example.com/pusher

      A running server takes each change within a second. Each request is signed with the secret key of the application.
      """,
    subcommands: [WebhookAddCommand.self, WebhookListCommand.self, WebhookRemoveCommand.self])
}

/// The command `datavaultd webhook add APPLICATION URL`.
struct WebhookAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a webhook, or give one other events.",
    discussion: """
      Examples:
        datavaultd webhook add shop https://example.com/pusher
        datavaultd webhook add shop https://example.com/rooms --event channel_occupied --event channel_vacated
        datavaultd webhook add shop --url-file url

      Without --event it is told of all events. An http URL, and a host in a private network, need a server that runs \
      with --allow-private-webhooks.
      """)

  @OptionGroup var application: ApplicationArgument

  @OptionGroup var url: WebhookURLOptions

  @Option(
    name: .customLong("event"),
    help: ArgumentHelp("An event to tell of. Can be repeated.", valueName: "event"))
  var events: [WebhookEventKind] = []

  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try SecretRules.check(credentials.sources + url.sources) }

  func run() async throws {
    let url = try url.read()
    try await runStore { store in
      let record = try await store.application(named: application.name)
      let added = try await store.put(
        webhook: url, events: Set(events.isEmpty ? WebhookEventKind.allCases : events),
        of: record.id)
      try WebhooksReport(record, [added]).print(report)
    }
  }
}

/// The command `datavaultd webhook list APPLICATION`.
struct WebhookListCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the webhooks of an application.")

  @OptionGroup var application: ApplicationArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try await runStore { store in
      let record = try await store.application(named: application.name)
      try await WebhooksReport(record, store.webhooks(of: record.id)).print(report)
    }
  }
}

/// The command `datavaultd webhook remove APPLICATION WEBHOOK`.
struct WebhookRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a webhook.",
    discussion: """
      A running server ends its deliveries within a second. Events that wait for it, and its dead letters, are removed.
      """)

  @OptionGroup var application: ApplicationArgument

  @Argument(help: "The webhook as 'webhook list' shows it: 16 digits.") var webhook: WebhookID

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    try confirmation.require("remove webhook '\(webhook)' of application '\(application.name)'")
    try await runStore { store in
      try await store.removeWebhook(webhook, of: store.application(named: application.name).id)
    }
    try confirm("removed webhook '\(webhook)' of application '\(application.name)'")
  }
}

extension WebhookID: ExpressibleByArgument {}
extension WebhookEventKind: ExpressibleByArgument {}

/// The report of `webhook list` and `webhook add`.
private struct WebhooksReport: Encodable {
  struct Entry: Encodable {
    let webhook: String
    let url: String
    let events: [String]
    let created: Date

    init(_ record: WebhookRecord) {
      webhook = record.id.description
      url = record.url.text
      events = WebhookEventKind.allCases.filter(record.events.contains).map(\.rawValue)
      created = record.created
    }
  }

  let application: String
  let webhooks: [Entry]

  init(_ record: ApplicationRecord, _ webhooks: [WebhookRecord]) {
    application = record.name
    self.webhooks = webhooks.map { Entry($0) }
  }

  func print(_ options: ReportOptions) throws {
    try options.print(self) {
      table(
        ["WEBHOOK", "URL", "EVENTS"],
        webhooks.map { webhook in
          [
            webhook.webhook, webhook.url,
            webhook.events.count == WebhookEventKind.allCases.count
              ? "all" : webhook.events.joined(separator: ", "),
          ]
        })
    }
  }
}
