import AccessControl
@testable import ApplicationStore
import Foundation
import TestSupport
import Testing

/// Webhooks in the tables, and their URLs.
@Suite struct WebhookStoreTests {
  let fixture: StoreFixture

  init() async throws { fixture = try await StoreFixture() }

  @Test func `a webhook is stored, gets other events, and is removed`() async throws {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let url = try WebhookURL("https://example.com/a?key=1")
    let added = try await store.put(webhook: url, events: [.channelOccupied], of: shop)
    #expect(added.created == start && added.events == [.channelOccupied])
    #expect(added.id == (try WebhookID(url.text, of: shop)))
    fixture.now = minute(1)
    let changed = try await store.put(
      webhook: url, events: [.memberAdded, .memberRemoved, .clientEvent], of: shop)
    #expect(changed.created == start && changed.id == added.id)
    #expect(try await fixture.neighbour().webhooks(of: shop) == [changed])
    try await store.removeWebhook(added.id, of: shop)
    #expect(try await store.webhooks(of: shop).isEmpty)
    #expect(await code { try await store.removeWebhook(added.id, of: shop) } == .unknownWebhook)
    #expect(
      await code { try await store.put(webhook: url, events: [], of: shop) } == .invalidArgument)
  }

  @Test func `a running directory learns of webhooks, and of their application's removal`()
    async throws
  {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    let directory = try await ApplicationDirectory.load(store)
    let neighbour = try await fixture.neighbour()
    let url = try WebhookURL("https://example.com")
    let added = try await neighbour.put(webhook: url, events: [.clientEvent], of: shop)
    #expect(try await directory.refresh().webhooks == [shop])
    #expect(directory.webhooks == [shop: [added]])
    #expect(try await ApplicationDirectory.load(store).webhooks == [shop: [added]])
    try await neighbour.removeApplication(shop)
    #expect(try await directory.refresh().webhooks == [shop])
    #expect(directory.webhooks.isEmpty)
    #expect(try await fixture.number("SELECT count(*) FROM application_webhook") == 0)
  }

  @Test func `the limits on webhooks hold for an application and for all together`() async throws {
    let store = try await fixture.store {
      $0.webhookCount = 2
      $0.totalWebhookCount = 3
    }
    let (shop, bank) = (
      try await store.addApplication("shop").id, try await store.addApplication("bank").id
    )
    func put(_ name: String, _ id: ApplicationID) async -> ApplicationStoreError.Code? {
      await code {
        try await store.put(webhook: WebhookURL("https://\(name)"), events: [.clientEvent], of: id)
      }
    }
    #expect(await put("a", shop) == nil)
    #expect(await put("b", shop) == nil)
    #expect(await put("c", shop) == .tooManyWebhooks)
    #expect(await put("b", shop) == nil)
    #expect(await put("a", bank) == nil)
    #expect(await put("b", bank) == .tooManyWebhooks)
    #expect(try await fixture.number("SELECT count(*) FROM application_webhook") == 3)
  }

  @Test func `tables of version 2 get the table of version 3, and keep what they have`()
    async throws
  {
    let store = try await fixture.store()
    let shop = try await store.addApplication("shop").id
    try await fixture.execute(
      "DROP TABLE application_webhook; UPDATE application_state SET version = 2")
    let migrated = try await fixture.neighbour()
    #expect(try await fixture.number("SELECT version FROM application_state") == 3)
    #expect(try await migrated.applications().map(\.id) == [shop])
    try await migrated.put(webhook: WebhookURL("https://a"), events: [.clientEvent], of: shop)
    #expect(try await migrated.webhooks(of: shop).count == 1)
  }

  @Test(arguments: [
    ("https://example.com", "example.com", 443, "/", "example.com", true),
    ("HTTPS://example.com:8443/a/b?c=d", "example.com", 8443, "/a/b?c=d", "example.com:8443", true),
    ("http://127.0.0.1:80?x", "127.0.0.1", 80, "/?x", "127.0.0.1:80", false),
    ("https://[::1]:1/", "::1", 1, "/", "[::1]:1", true),
    ("https://[2001:db8::1]/%20", "2001:db8::1", 443, "/%20", "[2001:db8::1]", true),
  ])
  func `a URL is read as it is written`(
    text: String, host: String, port: Int, target: String, authority: String, usesTLS: Bool
  ) throws {
    let url = try WebhookURL(text)
    #expect(url.text == text && url.host == host && url.port == port && url.target == target)
    #expect(url.authority == authority && url.usesTLS == usesTLS)
  }

  @Test(arguments: [
    "", "example.com", "ftp://example.com", "https://", "https:///a", "https://a b", "https://a/é",
    "https://user@example.com", "https://user:word@example.com/", "https://a/#b", "https://a:0/",
    "https://a:65536", "https://a:", "https://a:8x", "https://[::1", "https://[a]", "https://a.",
    "https://a\r\nX: y", "https://a\\b", "https://::1/", "https://a,b/",
  ])
  func `another URL is refused, and not repeated`(text: String) {
    #expect {
      try WebhookURL(text)
    } throws: { error in
      let error = error as? ApplicationStoreError
      return error?.code == .invalidArgument
        && (text.isEmpty || error?.message.contains(text) == false)
    }
  }

  @Test func `the longest URL has 1024 bytes`() throws {
    let url = "https://a/" + String(repeating: "x", count: 1014)
    #expect(try WebhookURL(url).text == url)
    #expect(throws: ApplicationStoreError.self) { try WebhookURL(url + "x") }
  }
}
