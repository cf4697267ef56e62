import Foundation
import TestSupport
import Testing

/// Commands beside a running `datavaultd serve` on the same home.
@Suite struct BesideServerTests {
  @Test func `a home becomes a member of a cluster only without a running server`() throws {
    let server = try ServerHome()
    let invitation = try server.file("invitation", "x")
    try server.serving { _ in
      for command in [
        ["provision", "--broker", "nats://127.0.0.1:1", "--without-login"],
        [
          "join", invitation, "--fingerprint", "AAAAA-AAAAA-AAAAA-AAAAA-AAAAA", "--copy",
          invitation,
        ],
        ["leave", "--yes", "--without-brokers"],
      ] {
        let refused = try server.run(["cluster"] + command).expect(75)
        #expect(refused.errors.contains("stop it first"), "\(refused.errors)")
      }
    }
  }

  @Test func `a running server takes each change of access`() throws {
    let server = try ServerHome()
    let (publish, subscribe) = (
      try #require(server.keys["publishKey"]), try #require(server.keys["subscribeKey"])
    )
    try server.serving { client in
      func status(_ credential: String = "") throws -> Int? {
        try client.status("/publish/\(publish)/\(subscribe)/0/orders/0/1?uuid=u\(credential)")
      }
      /// Runs a command, and waits until the server answers as it must after it.
      func change(_ arguments: String..., credential: String = "", gives: Int) throws {
        try server.run(arguments).expect(0)
        try eventually("\(arguments)") { try status(credential) == gives }
      }
      #expect(try status() == 403)
      try change("grant", "shop", "--channel", "orders", "--write", gives: 200)
      let grant = try #require(server.grants().first?["grant"] as? String)
      try change("grant", "remove", "shop", grant, gives: 403)
      let key = try server.file("key", "auth+key")
      let asClient = "&auth=auth%2Bkey"
      try change(
        "grant", "shop", "--channel", "orders", "--write", "--auth-key-file", key,
        credential: asClient, gives: 200)
      #expect(try status() == 403)
      let token = try server.token("token", "shop", "--channel", "orders", "--write", "--ttl", "1")
      let text = try #require(server.home.folder.contents(of: "token")).dropLast()
      let asBearer = "&auth=" + text.replacing("=", with: "%3D")
      #expect(try status(asBearer) == 200)
      try change("token", "revoke", "--token-file", token, credential: asBearer, gives: 403)
      try change("app", "set", "shop", "--open", gives: 200)
      try change("app", "set", "shop", "--closed", gives: 403)
      try change("app", "remove", "shop", credential: asClient, gives: 400)
    }
  }
}
