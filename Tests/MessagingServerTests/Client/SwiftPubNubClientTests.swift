import AccessControl
import ApplicationStore
import DataVault
import Foundation
import MessageCipher
import MessagingClient
import MessagingQueue
import NIOHTTP1
import StrictJSON
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// `MessagingClient`'s client of PubNub's protocol, against this server.
@Suite(.timeLimit(.minutes(10))) struct SwiftPubNubClientTests {
  private typealias Client = MessagingClient.PubNubClient

  private static func configuration(
    _ server: ServerFixture, _ keys: ServerFixture.Keys? = nil, userID: String = "anna"
  ) -> PubNubConfiguration {
    let keys = keys ?? server.open
    var configuration = PubNubConfiguration(
      server: server.url, subscribeKey: keys.subscribe, publishKey: keys.publish, userID: userID)
    configuration.backoff = Backoff(first: .milliseconds(10), maximum: .milliseconds(100))
    return configuration
  }

  private static func client(
    _ server: ServerFixture, _ change: (inout PubNubConfiguration) throws -> Void = { _ in }
  ) throws -> Client {
    var configuration = configuration(server)
    try change(&configuration)
    return try Client(configuration)
  }

  /// The next messages of a subscription, as texts.
  private static func texts(_ count: Int, of subscription: PubNubSubscription) async throws
    -> [String]
  {
    var texts: [String] = []
    for try await event in subscription {
      if case .message(let message) = event {
        texts.append(String(decoding: try message.content.get(), as: UTF8.self))
      }
      if texts.count == count { break }
    }
    return texts
  }

  @Test func `a message that is published comes to subscribers and is in the history`() async throws
  {
    try await ServerFixture.run { server in
      let client = try Self.client(server)
      let subscription = try client.subscribe(to: ["orders", "other"])
      var events = subscription.makeAsyncIterator()
      guard case .status(.connected)? = try await events.next() else {
        Issue.record("not connected")
        return
      }
      var publication = PubNubPublication()
      publication.meta = #"{"kind":"book"}"#
      publication.customType = "order"
      let place = try await client.publish(["item": "Bücher / 100 %"], to: "orders", publication)
      guard case .message(let message)? = try await events.next() else {
        Issue.record("no message")
        return
      }
      #expect(message.timetoken == place)
      #expect(message.channel == "orders" && message.publisher == "anna")
      #expect(message.meta == #"{"kind":"book"}"# && message.customType == "order")
      #expect(try message.decode() == ["item": "Bücher / 100 %"])
      let history = try await client.history(of: ["orders"])
      #expect(history.messages["orders"]?.map(\.timetoken) == [place])
      #expect(try history.messages["orders"]?.first?.decode() == ["item": "Bücher / 100 %"])
      #expect(try await client.messageCount(of: "orders", after: place) == 0)
      try await subscription.unsubscribe()
      #expect(try await events.next() == nil)
    }
  }

  @Test func `a subscription goes on at its place after a lost connection`() async throws {
    try await ServerFixture.run { server in
      let client = try Self.client(server)
      let first = try client.subscribe(to: ["a"], after: Timetoken(rawValue: 1))
      for number in 0..<3 { try await client.publish(json: Array("\(number)".utf8), to: "a") }
      #expect(try await Self.texts(3, of: first) == ["0", "1", "2"])
      for number in 3..<6 { try await client.publish(json: Array("\(number)".utf8), to: "a") }
      // Another client, at the place of the first.
      let second = try Self.client(server).subscribe(to: ["a"], after: first.place)
      #expect(try await Self.texts(3, of: second) == ["3", "4", "5"])
      #expect(try await Self.texts(3, of: first) == ["3", "4", "5"])
    }
  }

  @Test func `a cipher encrypts what is published, and the server never has the text`() async throws
  {
    try await ServerFixture.run { server in
      let key = SecretBytes.random(byteCount: 32)
      let cipher = try MessageCipher(key: key)
      let client = try Self.client(server) { $0.cipher = cipher }
      try await client.publish(["card": "4711"], to: "a")
      let stored = try await Self.client(server).history(of: ["a"])
      let content = try #require(stored.messages["a"]?.first?.content)
      let text = String(decoding: try content.get(), as: UTF8.self)
      #expect(!text.contains("4711"))
      let subscription = try client.subscribe(to: ["a"], after: Timetoken(rawValue: 1))
      #expect(try await Self.texts(1, of: subscription) == [#"{"card":"4711"}"#])
      let other = try Self.client(server) {
        $0.cipher = try MessageCipher(key: SecretBytes.random(byteCount: 32))
      }
      let unread = try await other.history(of: ["a"])
      #expect(throws: MessageCipherError.self) { try unread.messages["a"]?.first?.content.get() }
    }
  }

  @Test func `presence, state and groups are those of the server`() async throws {
    try await ServerFixture.run { server in
      let client = try Self.client(server)
      try await client.add(["a", "b"], toGroup: "g")
      #expect(try await client.channels(ofGroup: "g").sorted() == ["a", "b"])
      try await client.remove(["b"], fromGroup: "g")
      #expect(try await client.channels(ofGroup: "g") == ["a"])
      let subscription = try client.subscribe(to: ["p"], groups: ["g"], withPresence: true)
      var events = subscription.makeAsyncIterator()
      _ = try await events.next()
      try await client.setState(#"{"mood":"good"}"#, on: ["p"])
      #expect(try await client.state(on: "p") == #"{"mood":"good"}"#)
      #expect(try await client.hereNow(on: ["p"])["p"]?.userIDs == ["anna"])
      #expect(try await client.whereNow().contains("p"))
      try await client.publish(json: Array("1".utf8), to: "a")
      var message: PubNubMessage?
      while message == nil, let event = try await events.next() {
        if case .message(let found) = event { message = found }
      }
      #expect(message?.subscription == "g")
      try await client.unsubscribeAll()
      #expect(try await client.hereNow(on: ["p"]).isEmpty)
      try await client.removeGroup("g")
      #expect(try await client.channels(ofGroup: "g").isEmpty)
    }
  }

  @Test func `the secret key grants, audits and revokes rights, of auth keys and by tokens`()
    async throws
  {
    try await ServerFixture.run { server in
      var owner = Self.configuration(server, server.closed)
      owner.secretKey = SharedSecret(secret(server.closed.secretKey))
      let administrator = try Client(owner)
      let authKey = SharedSecret(secret("key of anna /+ü"))
      var user = Self.configuration(server, server.closed)
      user.authKey = authKey
      let client = try Client(user)
      await #expect(throws: MessagingClientError.self) {
        try await client.publish(json: [0x31], to: "a")
      }
      try await administrator.grant(
        [.read, .write], channels: ["a"], authKeys: [authKey], lifetime: .seconds(3600))
      try await client.publish(json: [0x31], to: "a")
      #expect(
        try await administrator.audit(channels: ["a"], authKeys: [authKey]).contains("\"w\":1"))
      let subscription = try client.subscribe(to: ["a"], after: Timetoken(rawValue: 1))
      #expect(try await Self.texts(1, of: subscription) == ["1"])
      try await administrator.revoke(channels: ["a"], authKeys: [authKey])
      let refusal = await #expect(throws: MessagingClientError.self) {
        for try await _ in subscription {}
      }
      #expect(refusal?.code == .forbidden)
      var request = PubNubTokenRequest(lifetime: .seconds(3600))
      request.userID = "anna"
      request.channels = ["b": .write]
      let token = SharedSecret(try await administrator.grantToken(request))
      user.authKey = token
      let tokenUser = try Client(user)
      try await tokenUser.publish(json: [0x32], to: "b")
      user.userID = "bert"
      let other = try Client(user)
      await #expect(throws: MessagingClientError.self) {
        try await other.publish(json: [0x32], to: "b")
      }
      try await administrator.revokeToken(token.withSecret { $0.copy() })
      let revoked = await #expect(throws: MessagingClientError.self) {
        try await tokenUser.publish(json: [0x32], to: "b")
      }
      #expect(revoked?.code == .forbidden)
    }
  }

  @Test func `a token has the rights of its patterns until it is revoked`() async throws {
    try await ServerFixture.run { server in
      var owner = Self.configuration(server, server.closed)
      owner.secretKey = SharedSecret(secret(server.closed.secretKey))
      let administrator = try Client(owner)
      var request = PubNubTokenRequest(lifetime: .seconds(3600))
      request.channelPatterns = ["^shop-[a-z]+$": .write]
      request.groupPatterns = ["^g-[0-9]$": .manage]
      let token = try await administrator.grantToken(request)
      var user = Self.configuration(server, server.closed)
      user.authKey = SharedSecret(copying: token)
      let client = try Client(user)
      try await client.publish(json: [0x31], to: "shop-books")
      try await client.add(["shop-books"], toGroup: "g-1")
      for channel in ["shop-1", "other"] {
        let refusal = await #expect(throws: MessagingClientError.self) {
          try await client.publish(json: [0x31], to: channel)
        }
        #expect(refusal?.code == .forbidden)
      }
      try await administrator.revokeToken(token)
      let refusal = await #expect(throws: MessagingClientError.self) {
        try await client.publish(json: [0x31], to: "shop-books")
      }
      #expect(refusal?.code == .forbidden)
    }
  }

  @Test func `a client without the secret key asks for no rights`() async throws {
    let client = try Client(
      PubNubConfiguration(
        server: "http://127.0.0.1:1", subscribeKey: "s", publishKey: "p", userID: "anna"))
    let errors = [
      await #expect(throws: MessagingClientError.self) {
        try await client.grant(.read, channels: ["a"], lifetime: nil)
      },
      await #expect(throws: MessagingClientError.self) {
        _ = try await client.grantToken(PubNubTokenRequest(lifetime: .seconds(60)))
      },
      await #expect(throws: MessagingClientError.self) {
        try await client.revokeToken(secret("t"))
      },
    ]
    for error in errors {
      #expect(error?.code == .invalidArgument && error?.description.contains("secret key") == true)
    }
  }

  @Test func `a publication with the id of an earlier one is not stored again, on each protocol`()
    async throws
  {
    try await ServerFixture.run { server in
      let (publish, subscribe) = (server.open.publish, server.open.subscribe)
      for body in ["1", "2"] {
        let answer = try await server.send(
          "POST", "/publish/\(publish)/\(subscribe)/0/a/0", body: Array(body.utf8),
          headers: [("datavault-deduplication-id", "one")])
        #expect(answer.status == 200)
      }
      let client = try Self.client(server)
      #expect(
        try await client.history(of: ["a"]).messages["a"]?.map { try $0.content.get() } == [[0x31]])
      let publisher = try PusherPublisher(
        server: server.url, applicationID: "\(server.open.record.id)", key: subscribe,
        secretKey: SharedSecret(secret(server.open.secretKey)))
      try await publisher.trigger("e", data: "3", on: ["a", "b"])
      #expect(
        try await client.history(of: ["a", "b"]).messages.mapValues(\.count) == ["a": 2, "b": 1])
      let bad = try await server.send(
        "POST", "/publish/\(publish)/\(subscribe)/0/a/0", body: Array("1".utf8),
        headers: [("datavault-deduplication-id", "a b")])
      #expect(bad.status == 400)
      let time = try await server.get("/time/0")
      #expect(time.headers["datavault-deduplication-window"] == ["3600"])
    }
  }

  @Test func `one call publishes to each friend, and a burst becomes two batches`() async throws {
    try await ServerFixture.run { server in
      let client = try Self.client(server)
      let subscription = try client.subscribe(to: ["burst"])
      var batches = subscription.batches(every: .milliseconds(300)).makeAsyncIterator()
      _ = try await batches.next()
      for number in 0..<20 { try await client.publish(number, to: "burst") }
      var counts: [Int] = []
      while counts.reduce(0, +) < 20, let batch = try await batches.next() {
        counts.append(batch.count)
      }
      #expect(counts.reduce(0, +) == 20 && counts.count <= 3)
      let friends = ["f1", "f2", "not / possible"] + (3..<30).map { "f\($0)" }
      let results = try await client.publish(["hello": "all"], toEach: friends)
      #expect(results.count == friends.count)
      for friend in friends where friend != "not / possible" {
        let place = try #require(try results[friend]?.get())
        #expect(try await client.history(of: [friend]).messages[friend]?.first?.timetoken == place)
      }
      #expect(throws: MessagingClientError.self) { try results["not / possible"]?.get() }
    }
  }

  @Test func `a vault has the client's cipher key, auth key, login and identity`() async throws {
    try await ServerFixture.run { server in
      let vault = server.vault
      try await vault.set(SecretBytes.random(byteCount: 32), kind: .binary, for: "message-key")
      try await server.grant([.read, .write], "a", .user(Name("ana")))
      try await server.put(user: "ana", "a password")
      let random = try await ClientSecrets(vault).clientID
      #expect(try await ClientSecrets(vault).clientID == random)
      try await vault.set(secret("ana"), kind: .string, for: "login-user")
      try await vault.set(secret("a password"), kind: .string, for: "login-password")
      let secrets = try await ClientSecrets(vault)
      var configuration = PubNubConfiguration(
        server: server.url, subscribeKey: server.closed.subscribe,
        publishKey: server.closed.publish, secrets: secrets)
      let client = try Client(configuration)
      // The server asks for credentials, and the vault's user has the right.
      try await client.publish(["card": "4711"], to: "a")
      #expect(
        try await client.history(of: ["a"]).messages["a"]?.first?.decode() == ["card": "4711"])
      #expect(secrets.clientID == "ana")
      configuration.challenges = nil
      let stranger = try Client(configuration)
      let refusal = await #expect(throws: MessagingClientError.self) {
        try await stranger.publish(json: [0x31], to: "a")
      }
      #expect([.unauthenticated, .forbidden].contains(refusal?.code))
    }
  }
}
