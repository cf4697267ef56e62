package import AccessControl
package import Foundation
internal import GRDB
package import VaultCrypto

/// What a webhook can be told of, by the names that Pusher gives the events.
package enum WebhookEventKind: String, Sendable, Hashable, CaseIterable {
  case channelOccupied = "channel_occupied"
  case channelVacated = "channel_vacated"
  case memberAdded = "member_added"
  case memberRemoved = "member_removed"
  case clientEvent = "client_event"

  /// The bit in the column `events`.
  fileprivate var bit: Int {
    switch self {
    case .channelOccupied: 1
    case .channelVacated: 2
    case .memberAdded: 4
    case .memberRemoved: 8
    case .clientEvent: 16
    }
  }
}

/// A webhook of an application: a URL that is told of events.
package struct WebhookRecord: Sendable, Hashable {
  /// What names it, in commands and logs.
  package let id: WebhookID
  /// Where the events go.
  package let url: WebhookURL
  /// Of what it is told.
  package let events: Set<WebhookEventKind>
  /// When the URL was added.
  package let created: Date
}

/// What names a webhook: 16 hexadecimal digits made of its application and its URL.
package struct WebhookID: Sendable, Hashable, LosslessStringConvertible {
  /// The digits.
  package let description: String

  /// Reads 16 hexadecimal digits of either case; nil for any other text.
  package init?(_ description: String) {
    guard let digits = ShortDigest.read(description) else { return nil }
    self.description = digits
  }

  /// The id of the webhook of an application with a URL.
  ///
  /// - Throws: an error of OpenSSL.
  package init(_ url: String, of application: ApplicationID) throws(CryptoError) {
    description = try ShortDigest.make(application.bytes + Array(url.utf8))
  }
}

/// Webhooks.
extension ApplicationStore {
  /// Adds a webhook; one that has the URL gets these events.
  ///
  /// - Parameter events: at least one.
  /// - Throws: `invalidArgument`, `unknownApplication`, `tooManyWebhooks`, `newerVersion`, `engine`.
  @discardableResult
  package func put(
    webhook url: WebhookURL, events: Set<WebhookEventKind>, of id: ApplicationID
  ) async throws(ApplicationStoreError) -> WebhookRecord {
    guard !events.isEmpty else {
      throw ApplicationStoreError(.invalidArgument, "the webhook has no events")
    }
    return try await change("storing a webhook") { [limits, now] db, changes in
      let row = try ApplicationRow.require(id, db)
      try db.run(
        """
        INSERT INTO application_webhook VALUES (?, ?, ?, ?)
          ON CONFLICT DO UPDATE SET events = excluded.events
        """, id.number, url.text, events.reduce(0) { $0 | $1.bit }, now().ticks)
      let webhooks = try Self.webhooks(of: id, db)
      let total = try db.number("SELECT count(*) FROM application_webhook") ?? 0
      guard webhooks.count <= limits.webhookCount, total <= limits.totalWebhookCount else {
        throw ApplicationStoreError(
          .tooManyWebhooks,
          "application '\(row.record.name)' would have more than \(limits.webhookCount) webhooks, "
            + "or all together more than \(limits.totalWebhookCount)",
          hint: "remove webhooks that are not used")
      }
      changes = [.webhooks(of: id)]
      guard let added = webhooks.first(where: { $0.url == url }) else {
        throw ApplicationStoreError.damaged("a webhook", of: id)
      }
      return added
    }
  }

  /// Removes a webhook; what waits for it is not delivered.
  ///
  /// - Throws: `unknownApplication`, `unknownWebhook`, `newerVersion`, `engine`.
  package func removeWebhook(
    _ webhook: WebhookID, of id: ApplicationID
  ) async throws(ApplicationStoreError) {
    try await change("removing a webhook") { db, changes in
      let row = try ApplicationRow.require(id, db)
      guard let found = try Self.webhooks(of: id, db).first(where: { $0.id == webhook }) else {
        throw ApplicationStoreError(
          .unknownWebhook, "application '\(row.record.name)' has no webhook '\(webhook)'",
          hint: "datavaultd webhook list shows all webhooks")
      }
      try db.run(
        "DELETE FROM application_webhook WHERE application_id = ? AND url = ?", id.number,
        found.url.text)
      changes = [.webhooks(of: id)]
    }
  }

  /// The webhooks of an application, by their URLs.
  ///
  /// - Throws: `unknownApplication`, `damaged`, `newerVersion`, `engine`.
  package func webhooks(
    of id: ApplicationID
  ) async throws(ApplicationStoreError) -> [WebhookRecord] {
    try await read("listing webhooks") { db in
      _ = try ApplicationRow.require(id, db)
      return try Self.webhooks(of: id, db)
    }
  }

  /// The webhooks of an application, by their URLs.
  static func webhooks(of id: ApplicationID, _ db: Database) throws -> [WebhookRecord] {
    var webhooks: [WebhookRecord] = []
    let rows = try db.rows(
      """
      SELECT url, events, created FROM application_webhook WHERE application_id = ? ORDER BY url
      """, id.number)
    while let row = try rows.next() {
      let bits: Int = row[1]
      guard let url = try? WebhookURL(row[0]) else {
        throw ApplicationStoreError.damaged("a webhook", of: id)
      }
      webhooks.append(
        WebhookRecord(
          id: try WebhookID(url.text, of: id), url: url,
          events: Set(WebhookEventKind.allCases.filter { bits & $0.bit != 0 }),
          created: Date(ticks: row[2])))
    }
    return webhooks
  }
}
