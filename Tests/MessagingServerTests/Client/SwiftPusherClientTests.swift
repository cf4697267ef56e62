import AccessControl
import ApplicationStore
import Foundation
import MessagingClient
import PusherEncryption
import StrictJSON
import Synchronization
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// `MessagingClient`'s client of Pusher's protocol, against this server.
@Suite(.timeLimit(.minutes(10))) struct SwiftPusherClientTests {
  private typealias Client = MessagingClient.PusherClient

  private static func configuration(
    _ server: ServerFixture, _ keys: ServerFixture.Keys? = nil,
    _ authorizer: (any ChannelAuthorizer)? = nil
  ) -> PusherConfiguration {
    var configuration = PusherConfiguration(
      server: server.url, key: (keys ?? server.open).subscribe, authorizer: authorizer)
    configuration.backoff = Backoff(first: .milliseconds(10), maximum: .milliseconds(100))
    return configuration
  }

  private static func authorizer(
    _ keys: ServerFixture.Keys, userID: String = "anna"
  ) -> SecretKeyAuthorizer {
    SecretKeyAuthorizer(key: keys.subscribe, secretKey: SharedSecret(secret(keys.secretKey))) { _ in
      #"{"user_id":"\#(userID)","user_info":{"name":"\#(userID)"}}"#
    }
  }

  private static func publisher(_ server: ServerFixture, _ keys: ServerFixture.Keys) throws
    -> PusherPublisher
  {
    try PusherPublisher(
      server: server.url, applicationID: "\(keys.record.id)", key: keys.subscribe,
      secretKey: SharedSecret(secret(keys.secretKey)))
  }

  /// The next message of a subscription.
  private static func message(_ events: inout PusherSubscription.Iterator) async throws
    -> MessagingClient.PusherMessage
  {
    while let event = try await events.next() {
      if case .message(let message) = event { return message }
    }
    throw Ended()
  }

  private struct Ended: Error {}

  @Test
  func `events of public and private channels come to subscribers, and not to the excluded one`()
    async throws
  {
    try await ServerFixture.run { server in
      let client = try Client(Self.configuration(server, nil, Self.authorizer(server.open)))
      var open = try await client.subscribe(to: "a").makeAsyncIterator()
      var closed = try await client.subscribe(to: "private-a").makeAsyncIterator()
      let publisher = try Self.publisher(server, server.open)
      try await publisher.trigger(
        "excluded", data: "0", on: ["a"], excluding: await client.socketID)
      try await publisher.trigger("e", data: #"{"n":1}"#, on: ["a", "private-a"])
      for message in [try await Self.message(&open), try await Self.message(&closed)] {
        #expect(message.name == "e")
        #expect(try message.decode() == ["n": 1])
      }
      await client.close()
      #expect(try await open.next() == nil)
    }
  }

  @Test func `presence has the members, who come and go, and client events come from their users`()
    async throws
  {
    try await ServerFixture.run { server in
      let anna = try Client(Self.configuration(server, nil, Self.authorizer(server.open)))
      let bert = try Client(
        Self.configuration(server, nil, Self.authorizer(server.open, userID: "bert")))
      let room = try await anna.subscribe(to: "presence-a")
      #expect(room.members.map(\.userID) == ["anna"] && room.userID == "anna")
      var events = room.makeAsyncIterator()
      let other = try await bert.subscribe(to: "presence-a")
      #expect(other.members.map(\.info) == [#"{"name":"anna"}"#, #"{"name":"bert"}"#])
      try await other.trigger("client-typing", json: Array(#"{"on":true}"#.utf8))
      let message = try await Self.message(&events)
      #expect(message.name == "client-typing" && message.userID == "bert")
      await bert.close()
      var left: String?
      while left == nil, let event = try await events.next() {
        if case .memberRemoved(let userID) = event { left = userID }
      }
      #expect(left == "bert")
      #expect(room.members.map(\.userID) == ["anna"])
    }
  }

  @Test
  func
    `a private channel without an authorizer, and an authorizer that refuses, fail with the reason`()
    async throws
  {
    struct Refusing: ChannelAuthorizer {
      func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
        throw ChannelAuthorizationError(
          status: 402, body: Array("pay first".utf8), description: "no money")
      }
    }
    try await ServerFixture.run { server in
      let without = try Client(Self.configuration(server))
      let missing = await #expect(throws: MessagingClientError.self) {
        try await without.subscribe(to: "private-a")
      }
      #expect(missing?.code == .unauthenticated)
      let refused = await #expect(throws: MessagingClientError.self) {
        try await Client(Self.configuration(server, nil, Refusing())).subscribe(
          to: "private-a")
      }
      #expect(refused?.code == .forbidden && refused?.status == 402)
      // A signature under a wrong key, which the server refuses.
      let forged = SecretKeyAuthorizer(
        key: server.open.subscribe, secretKey: SharedSecret(secret("x")))
      let wrong = await #expect(throws: MessagingClientError.self) {
        try await Client(Self.configuration(server, nil, forged)).subscribe(to: "private-a")
      }
      #expect(wrong?.code == .forbidden)
    }
  }

  @Test
  func `a server authorizer answers the endpoint's challenge once, and keeps what it refuses`()
    async throws
  {
    try await ServerFixture.run { server in
      try await server.grant([.read, .write], "private-c", .user(Name("ana")))
      // The server knows the grant when it knows the user.
      try await server.put(user: "ana", "a password")
      let prompts = Mutex(0)
      let challenges = ClientChallenges(
        BasicChallengeHandler(
          ClosureLoginHandler { request in
            prompts.withLock { $0 += 1 }
            return LoginCredentials(user: secret("ana"), password: secret("a password"))
          }))
      let endpoint = "\(server.url)/pusher/auth/\(server.closed.subscribe)"
      let authorizer = try ServerChannelAuthorizer(url: endpoint, challenges: challenges)
      let client = try Client(Self.configuration(server, server.closed, authorizer))
      var events = try await client.subscribe(to: "private-c").makeAsyncIterator()
      try await Self.publisher(server, server.closed).trigger("e", data: "1", on: ["private-c"])
      #expect(try await Self.message(&events).name == "e")
      let refused = await #expect(throws: MessagingClientError.self) {
        try await client.subscribe(to: "private-other")
      }
      #expect(refused?.status == 403)
      #expect(prompts.withLock { $0 } == 1)
      // With a wrong password, the endpoint is not asked without end.
      let wrong = ClientChallenges(
        BasicChallengeHandler(
          ClosureLoginHandler { _ in
            LoginCredentials(user: secret("ana"), password: secret("wrong"))
          }))
      let guessing = try ServerChannelAuthorizer(url: endpoint, challenges: wrong)
      let failure = await #expect(throws: MessagingClientError.self) {
        try await guessing.authorize(
          ChannelAuthorizationRequest(channel: "private-c", socketID: "1.2"))
      }
      #expect(failure?.code == .unauthenticated)
      await client.close()
    }
  }

  @Test func `a client connects again by itself, and asks for its channels again`() async throws {
    try await ServerFixture.run { server in
      let client = try Client(Self.configuration(server, nil, Self.authorizer(server.open)))
      var events = try await client.subscribe(to: "private-a").makeAsyncIterator()
      _ = try await events.next()
      let before = await client.socketID
      server.server.connections.closeAll()
      guard case .status(.disconnected)? = try await events.next(),
        case .status(.subscribed)? = try await events.next()
      else {
        Issue.record("the client did not connect again")
        return
      }
      #expect(await client.socketID != before)
      try await Self.publisher(server, server.open).trigger("e", data: "1", on: ["private-a"])
      #expect(try await Self.message(&events).name == "e")
    }
  }

  @Test func `encrypted channels pass the server between a sealing publisher and the client`()
    async throws
  {
    struct Sharing: ChannelAuthorizer {
      let signing: SecretKeyAuthorizer
      let masterKey: SharedSecret

      func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
        let key = try masterKey.withSecret {
          try PusherEncryption.key(of: request.channel, masterKey: $0)
        }
        return ChannelAuthorization(
          auth: try signing.authorize(request).auth,
          channelKey: SharedSecret(try PusherEncryption.sharedSecret(of: key)))
      }
    }
    try await ServerFixture.run { server in
      let masterKey = SharedSecret(SecretBytes.random(byteCount: 32))
      var configuration = Self.configuration(
        server, nil, Sharing(signing: Self.authorizer(server.open), masterKey: masterKey))
      let name = "private-encrypted-a"
      let without = await #expect(throws: MessagingClientError.self) {
        try await Client(configuration).subscribe(to: name)
      }
      #expect(without?.code == .invalidArgument)
      configuration.decryption = PusherEncryption()
      let client = try Client(configuration)
      var events = try await client.subscribe(to: name).makeAsyncIterator()
      let sealed = try masterKey.withSecret {
        try PusherEncryption().seal(
          Array(#"{"card":"4711"}"#.utf8), key: PusherEncryption.key(of: name, masterKey: $0))
      }
      let publisher = try Self.publisher(server, server.open)
      try await publisher.trigger("e", data: String(decoding: sealed, as: UTF8.self), on: [name])
      try await publisher.trigger("forged", data: "{}", on: [name])
      #expect(try await Self.message(&events).decode() == ["card": "4711"])
      let forged = try await Self.message(&events)
      #expect(throws: ChannelDecryptionError.self) { try forged.content.get() }
      await client.close()
    }
  }
}
