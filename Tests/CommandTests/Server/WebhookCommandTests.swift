import Foundation
import TestSupport
import Testing

@Suite struct WebhookCommandTests {
  private let server: ServerHome
  private let url = "https://example.com/pusher?key=value"

  init() throws { server = try ServerHome() }

  @Test func `a webhook is listed with its events until removed, and can get others`() throws {
    let added = try server.run("webhook", "add", "shop", url, "--json").expect(0)
    let webhook = try #require((added.objects.first?["webhooks"] as? [[String: Any]])?.first)
    let id = try #require(webhook["webhook"] as? String)
    #expect(webhook["url"] as? String == url)
    #expect((webhook["events"] as? [String])?.count == 5)
    #expect(
      try server.run("webhook", "list", "shop").lines.last?.hasSuffix("\(url)  all") == true)
    try server.run(
      "webhook", "add", "shop", url, "--event", "member_added", "--event", "client_event"
    ).expect(0)
    let list = try server.run("webhook", "list", "shop").lines
    #expect(list.count == 2)
    #expect(list.last == "\(id)  \(url)  member_added, client_event")
    try server.run("webhook", "remove", "shop", id.uppercased()).expect(0)
    try server.run("webhook", "remove", "shop", id).expect(66, says: "has no webhook '\(id)'")
  }

  @Test func `a URL or an event that is not valid is refused, and not repeated`() throws {
    for url in ["example.com", "https://user:word@example.com/", "ftp://example.com/secret"] {
      let refused = try server.run("webhook", "add", "shop", url)
      refused.expect(64, says: "the URL of the webhook")
      #expect(!refused.errors.contains("word@") && !refused.errors.contains("secret"))
    }
    try server.run("webhook", "add", "shop", url, "--event", "cache_miss").expect(64)
    try server.run("webhook", "add", "bank", url).expect(66, says: "no application 'bank'")
  }
}
