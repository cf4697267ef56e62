import ApplicationStore
import Foundation
import MessageCipher
import MessagingClient
import PusherEncryption
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// Each cipher, between `MessagingClient` and the stock client of its protocol, through a server that has no key.
@Suite(
  .timeLimit(.minutes(10)),
  .enabled(
    if: PubNubClient.python != nil && PusherClient.python != nil,
    "pubnub, or pysher and pusher, are not installed"))
struct SwiftCipherTests {
  enum Cipher: CaseIterable {
    /// AES-CBC under the hexadecimal digest of the cipher key, with PubNub's constant initialization vector.
    case legacyStaticIV
    /// The same, with a random initialization vector in front of the message.
    case legacyRandomIV
    /// PubNub's crypto module: AES-CBC behind the header `PNED` with the identifier `ACRH`.
    case aesCBC
    /// Our own, which no stock client reads or writes.
    case xaes256GCM
    /// Pusher's encrypted channels: XSalsa20-Poly1305 under a key of the channel.
    case secretbox

    /// The form of PubNub's protocol; nil for Pusher's.
    var form: MessageCipher.Form? {
      switch self {
      case .legacyStaticIV: .legacyStaticIV
      case .legacyRandomIV: .legacyRandomIV
      case .aesCBC: .aesCBC
      case .xaes256GCM: .xaes256GCM
      case .secretbox: nil
      }
    }
  }

  enum Direction: CaseIterable {
    case swiftToSwift
    case swiftToStock
    case stockToSwift
  }

  /// JSON texts: some of a whole number of blocks, some not.
  private static let values = [
    #""a""#, #""thirteen 13b""#, #""zwei Bücher 📚""#, "-1.5", "true",
    #"{"text":["c/d?e&f%",null]}"#,
    "\"" + String(repeating: "long ", count: 1_000) + "\"",
  ]
  private static var valuesArgument: String { "values=[\(values.joined(separator: ","))]" }

  private static let pairs = Cipher.allCases.flatMap { cipher in
    Direction.allCases.map { (cipher: cipher, direction: $0) }
  }

  /// A message of our own cipher reaches the stock client as a text that it reports and does not read, and what the
  /// stock client encrypts is refused by a cipher that reads only our own.
  @Test(arguments: Exhaustive.sample(of: pairs, oneIn: 4))
  func `what one client encrypts, the other decrypts`(
    cipher: Cipher, direction: Direction
  ) async throws {
    try await ServerFixture.run { server in
      if let form = cipher.form {
        try await PubNub(server: server, form: form).exchange(direction)
      } else {
        try await Pusher(server: server).exchange(direction)
      }
    }
  }

  @Test(arguments: [Cipher.legacyStaticIV, .legacyRandomIV, .aesCBC])
  func `what PubNub's stock client encrypts, the clients of the other protocols decrypt too`(
    cipher: Cipher
  ) async throws {
    let form = try #require(cipher.form)
    try await ServerFixture.runWithSTOMP { server in
      let exchange = PubNub(server: server, form: form)
      var pusher = PusherConfiguration(server: server.url, key: server.open.subscribe)
      pusher.cipher = try exchange.cipher()
      let pusherClient = try MessagingClient.PusherClient(pusher)
      let events = try await pusherClient.subscribe(to: "theirs")
      var stomp = STOMPConfiguration(
        server: "stomp://\(server.stompOrigin)", application: server.open.record.name,
        login: .credentials(login: server.open.publish))
      stomp.cipher = try exchange.cipher()
      let stompClient = try MessagingClient.STOMPClient(stomp)
      let messages = try await stompClient.subscribe(to: "/topic/theirs")
      try await exchange.check("encrypts")
      var contents: [[UInt8]] = []
      for try await case .message(let message) in events {
        contents.append(try message.content.get())
        if contents.count == Self.values.count { break }
      }
      try Self.expectValues(contents)
      contents = []
      for try await case .message(let message) in messages {
        contents.append(try message.content.get())
        if contents.count == Self.values.count { break }
      }
      try Self.expectValues(contents)
      await pusherClient.close()
      await stompClient.close()
    }
  }

  /// The values of JSON texts, which two writers write differently.
  private static func parse(_ texts: [[UInt8]]) throws -> [NSObject] {
    try texts.map {
      try #require(
        try JSONSerialization.jsonObject(with: Data($0), options: .fragmentsAllowed) as? NSObject)
    }
  }

  private static func expectValues(
    _ texts: [[UInt8]], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let wanted = try parse(values.map { Array($0.utf8) })
    #expect(try parse(texts) == wanted, sourceLocation: sourceLocation)
  }

  // MARK: - PubNub's forms, live and from history

  private struct PubNub {
    typealias Contents = [Result<[UInt8], MessageCipherError>]

    private static let cipherKey = "the key of the clients"

    let server: ServerFixture
    let form: MessageCipher.Form

    private var isOurs: Bool { form == .xaes256GCM }
    /// What the stock client encrypts with.
    private var stockForm: MessageCipher.Form { isOurs ? .aesCBC : form }

    func exchange(_ direction: Direction) async throws {
      let client = try client()
      switch direction {
      case .swiftToSwift:
        async let live = live("ours", self.client())
        try await server.waitForPolls(1)
        try await publish(client)
        try SwiftCipherTests.expectValues(try await live.map { try $0.get() })
        try SwiftCipherTests.expectValues(try await stored("ours", client).map { try $0.get() })
        try await expectNoText()
      case .swiftToStock:
        async let stock: Void = check(isOurs ? "unread" : "decrypts")
        try await server.waitForPolls(1)
        try await publish(client)
        try await stock
      case .stockToSwift:
        async let live = live("theirs", client)
        try await server.waitForPolls(1)
        try await check("encrypts")
        for contents in [try await live, try await stored("theirs", client)] {
          if isOurs {
            #expect(contents.count == values.count)
            for content in contents {
              let error = #expect(throws: MessageCipherError.self) { try content.get() }
              #expect(error?.code == .formRefused)
            }
          } else {
            try SwiftCipherTests.expectValues(try contents.map { try $0.get() })
          }
        }
      }
    }

    /// Each call makes a cipher with the same key.
    func cipher() throws -> MessageCipher {
      let key = isOurs ? SecretBytes(copying: (0..<32).map { $0 }) : secret(Self.cipherKey)
      return try MessageCipher(writing: MessageCipher.Key(form, key))
    }

    private func client() throws -> MessagingClient.PubNubClient {
      var configuration = PubNubConfiguration(
        server: server.url, subscribeKey: server.open.subscribe, publishKey: server.open.publish,
        userID: "anna")
      configuration.cipher = try cipher()
      return try MessagingClient.PubNubClient(configuration)
    }

    func check(_ scenario: String) async throws {
      try await PubNubClient.check(
        scenario, server, server.open, "cipher=\(Self.cipherKey)", "form=\(stockForm)",
        SwiftCipherTests.valuesArgument)
    }

    private func publish(_ client: MessagingClient.PubNubClient) async throws {
      for value in values { try await client.publish(json: Array(value.utf8), to: "ours") }
    }

    /// What comes to a subscriber that waits.
    private func live(
      _ channel: String, _ client: MessagingClient.PubNubClient
    ) async throws -> Contents {
      let subscription = try client.subscribe(to: [channel], after: Timetoken(rawValue: 1))
      var contents: Contents = []
      for try await case .message(let message) in subscription {
        contents.append(message.content)
        if contents.count == values.count { break }
      }
      return contents
    }

    private func stored(
      _ channel: String, _ client: MessagingClient.PubNubClient
    ) async throws -> Contents {
      try await client.history(of: [channel]).messages[channel]?.map(\.content) ?? []
    }

    /// Expects that the server has base64 for everything.
    private func expectNoText() async throws {
      let answer = try await server.get(
        "/v3/history/sub-key/\(server.open.subscribe)/channel/ours?max=100")
      #expect(answer.text.components(separatedBy: #""message":""#).count == values.count + 1)
      // Each has a character that base64 has not.
      for text in ["thirteen 13b", "zwei B", "long long", "-1.5", "c/d?e"] {
        #expect(!answer.text.contains(text))
      }
    }

    private var values: [String] { SwiftCipherTests.values }
  }

  // MARK: - Pusher's encrypted channels, which have no history

  private struct Pusher {
    /// Gives out the key of a channel, as an authorization endpoint does.
    private struct Authorizer: ChannelAuthorizer {
      let signing: SecretKeyAuthorizer

      func authorize(_ request: ChannelAuthorizationRequest) async throws -> ChannelAuthorization {
        ChannelAuthorization(
          auth: try signing.authorize(request).auth,
          channelKey: SharedSecret(
            try PusherEncryption.sharedSecret(of: Pusher.key(of: request.channel))))
      }
    }

    private static let masterKey = [UInt8](repeating: UInt8(ascii: "m"), count: 32)

    let server: ServerFixture

    private static func key(of channel: String) throws -> SecretBytes {
      try PusherEncryption.key(of: channel, masterKey: SecretBytes(copying: masterKey))
    }

    func exchange(_ direction: Direction) async throws {
      let (ours, theirs) = ("private-encrypted-ours", "private-encrypted-theirs")
      switch direction {
      case .swiftToSwift:
        try await receive(ours) { try await publish(to: ours) }
      case .swiftToStock:
        async let stock: Void = check("decrypts")
        let (hub, id) = (try #require(server.server.gate.home).pusher, server.open.record.id)
        try await eventually { hub.occupancy(of: ours, in: id).subscriptionCount > 0 }
        try await publish(to: ours)
        try await stock
      case .stockToSwift:
        try await receive(theirs) { try await check("encrypts") }
      }
    }

    private func check(_ scenario: String) async throws {
      let master = Data(Self.masterKey).base64EncodedString()
      try await PusherClient.check(
        scenario, server, server.open, "master=\(master)", SwiftCipherTests.valuesArgument)
    }

    private func publish(to channel: String) async throws {
      let publisher = try PusherPublisher(
        server: server.url, applicationID: "\(server.open.record.id)", key: server.open.subscribe,
        secretKey: SharedSecret(secret(server.open.secretKey)))
      let key = try Self.key(of: channel)
      for value in SwiftCipherTests.values {
        let sealed = try PusherEncryption().seal(Array(value.utf8), key: key)
        try await publisher.trigger(
          "e", data: String(decoding: sealed, as: UTF8.self), on: [channel])
      }
    }

    /// Expects the values on a channel, once the client is subscribed to it.
    private func receive(_ channel: String, _ publish: () async throws -> Void) async throws {
      var configuration = PusherConfiguration(server: server.url, key: server.open.subscribe)
      configuration.authorizer = Authorizer(
        signing: SecretKeyAuthorizer(
          key: server.open.subscribe, secretKey: SharedSecret(secret(server.open.secretKey))))
      configuration.decryption = PusherEncryption()
      let client = try MessagingClient.PusherClient(configuration)
      let subscription = try await client.subscribe(to: channel)
      try await publish()
      var contents: [[UInt8]] = []
      for try await case .message(let message) in subscription {
        contents.append(try message.content.get())
        if contents.count == SwiftCipherTests.values.count { break }
      }
      try SwiftCipherTests.expectValues(contents)
      await client.close()
    }
  }
}
