import Foundation
import MessageCipher
import ProcessMemory
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@testable import MessagingServer

/// Messages that their clients encrypt: the server carries and stores them, and has no key.
@Suite struct EncryptionTests {
  private static let cipherKey = "the key of the clients"
  /// SHA-256 of the cipher key, which PubNub's forms encrypt with.
  private static let digest = "fc941c6392aa40e187604336329dacd6c7fc9ed809a2293a8af626dae4daaf96"
  private static let forms: [MessageCipher.Form] = [
    .xaes256GCM, .aesCBC, .legacyRandomIV, .legacyStaticIV,
  ]
  /// JSON texts: some of a whole number of blocks, some not.
  private static let values = [
    #""a""#, #""thirteen 13b""#, #""zwei Bücher 📚""#, "-1.5", "true",
    #"{"text":["c/d?e&f%",null]}"#,
    "\"" + String(repeating: "long ", count: 4_000) + "\"",
  ]

  /// A cipher of one form; each call makes one with the same key.
  private static func cipher(_ form: MessageCipher.Form) throws -> MessageCipher {
    let key =
      form == .xaes256GCM
      ? SecretBytes(copying: Array(cipherKey.utf8) + digest.utf8.prefix(10))
      : secret(cipherKey)
    return try MessageCipher(writing: MessageCipher.Key(form, key))
  }

  private static func publish(
    _ form: MessageCipher.Form, to channel: String, _ server: ServerFixture
  ) async throws {
    let cipher = try cipher(form)
    let (publish, subscribe) = (server.open.publish, server.open.subscribe)
    for value in values {
      let answer = try await server.send(
        "POST", "/publish/\(publish)/\(subscribe)/0/\(channel)/0",
        body: cipher.encrypt(value.utf8, channel: channel))
      try #require(answer.status == 200, "\(answer.text)")
    }
  }

  /// Expects the values of a channel, decrypted, from every call that gives messages.
  private static func expectValues(
    _ form: MessageCipher.Form, on channel: String, _ server: ServerFixture
  ) async throws {
    let key = server.open.subscribe
    let live = try await liveMessages(on: channel, server)
    let fetched = try await object(server, "/v3/history/sub-key/\(key)/channel/\(channel)?max=100")
    let history = try await object(server, "/v2/history/sub-key/\(key)/channel/\(channel)")
    let ways: [(String, [Any]?)] = [
      ("subscribe", live),
      (
        "version 3",
        (((fetched as? [String: Any])?["channels"] as? [String: Any])?[channel]
          as? [[String: Any]])?.compactMap { $0["message"] }
      ),
      ("version 2", (history as? [Any])?.first as? [Any]),
    ]
    let cipher = try cipher(form)
    let wanted = try values.map { try parse(Array($0.utf8)) }
    for (way, messages) in ways {
      let texts = try #require(messages as? [String], "\(way)")
      let opened = try texts.map { try cipher.decrypt("\"\($0)\"".utf8, channel: channel) }
      #expect(opened.allSatisfy { $0.form == form }, "\(way)")
      #expect(try opened.map { try parse($0.bytes) } == wanted, "\(way)")
    }
  }

  /// A poll gives what is distributed by then, which can be less than what is published.
  private static func liveMessages(
    on channel: String, _ server: ServerFixture
  ) async throws -> [Any] {
    var (place, messages) = ("1", [Any]())
    while messages.count < values.count {
      let answer = try #require(
        try await object(server, "/v2/subscribe/\(server.open.subscribe)/\(channel)/0?tt=\(place)")
          as? [String: Any])
      place = try #require((answer["t"] as? [String: Any])?["t"] as? String)
      messages += try #require(answer["m"] as? [[String: Any]]).compactMap { $0["d"] }
    }
    return messages
  }

  private static func object(_ server: ServerFixture, _ target: String) async throws -> Any {
    try parse(Array(try await server.get(target).text.utf8))
  }

  private static func parse(_ json: [UInt8]) throws -> NSObject {
    try #require(
      try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed) as? NSObject)
  }

  @Test(arguments: forms)
  func `encrypted messages pass the server between two ciphers, live and from history`(
    form: MessageCipher.Form
  ) async throws {
    try await ServerFixture.run { server in
      try await Self.publish(form, to: "ours", server)
      try await Self.expectValues(form, on: "ours", server)
    }
  }

  @Test(
    .enabled(if: PubNubClient.python != nil, "pubnub is not installed"),
    arguments: forms.dropFirst())
  func `encrypted messages pass the server between MessageCipher and the stock client`(
    form: MessageCipher.Form
  ) async throws {
    try await ServerFixture.run { server in
      try await Self.publish(form, to: "ours", server)
      try await PubNubClient.check(
        "encryption", server, server.open, "cipher=\(Self.cipherKey)", "form=\(form)",
        "values=[\(Self.values.joined(separator: ","))]")
      try await Self.expectValues(form, on: "theirs", server)
    }
  }

  @Test func `the server has neither key nor plaintext of encrypted messages`() throws {
    let scratch = ScratchFolder()
    let access = scratch.path("access")
    let server = try ServerProgram(in: scratch, ["--access-log", access, "--log-level", "debug"])
    let plain = #"{"text":"what only the clients know"}"#
    var sent: [[UInt8]] = []
    for form in Self.forms {
      sent.append(try Self.cipher(form).encrypt(plain.utf8, channel: "c"))
      #expect(try server.publish(sent.last ?? [], to: "c").contains("Sent"))
    }
    let readable = Array(#"{"text":"what is not encrypted"}"#.utf8)
    #expect(try server.publish(readable, to: "c").contains("Sent"))
    let key = server.keys.subscribeKey
    for target in [
      "/v2/subscribe/\(key)/c/0?tt=1", "/v3/history/sub-key/\(key)/channel/c",
      "/v2/history/sub-key/\(key)/channel/c",
    ] {
      #expect(try server.get(target).contains("what is not encrypted"))
    }

    let digest = stride(from: 0, to: 64, by: 2).map {
      UInt8(Self.digest.dropFirst($0).prefix(2), radix: 16) ?? 0
    }
    let secrets: [(String, [UInt8])] = [
      ("plaintext", Array("what only the clients know".utf8)),
      ("cipher key", Array(Self.cipherKey.utf8)), ("key of the crypto module", digest),
      ("key of the legacy forms", Array(Self.digest.utf8.prefix(32))),
    ]
    let memory = try server.image("memory")
    // The search finds what is there.
    #expect(memory.contains(readable))
    for message in sent { #expect(memory.contains(message)) }
    for (name, secret) in secrets { #expect(!memory.contains(secret), "\(name) in the memory") }

    server.stop()
    let messages = (sent + [readable]).map { ("message", $0) }
    #expect(scratch.contents(of: "access")?.contains("/publish/") == true)
    let names = try #require(FileManager.default.enumerator(atPath: scratch.path.string))
    for case let name as String in names where name != "memory" {
      guard let bytes = FileManager.default.contents(atPath: scratch.path(name)) else { continue }
      for (what, secret) in secrets + messages {
        #expect(bytes.range(of: Data(secret)) == nil, "\(what) in \(name)")
      }
    }
  }
}
