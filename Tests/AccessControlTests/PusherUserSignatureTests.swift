import Foundation
import TestSupport
import Testing
import VaultCrypto

@testable import AccessControl

/// What the authorization endpoint answers for a user.
@Suite struct PusherUserSignatureTests {
  private let application: Application
  private let version: PasswordVersion
  private let user = made(try Name("ana:bé"))
  private let channel = made(try ChannelName("private-foobar"))
  private static let key = "278d425bdf160c739803"

  init() throws {
    application = try Self.application(id: 3)
    version = try #require(Self.version(Array(0..<16)))
  }

  private static func application(
    id: Int64, key: String = key, secretKey: String = "7ad3773142a6692b25b8"
  ) throws -> Application {
    try Application(
      id: ApplicationID(id), name: "shop", publishKey: "pub", subscribeKey: key,
      secretKey: SecretKey(secret(secretKey)))
  }

  private static func version(_ salt: [UInt8]) -> PasswordVersion? {
    let code = [UInt8](repeating: 1, count: 32)
    return PasswordVerifier(salt: salt, iterationCount: 1, code: code)?.version
  }

  @Test func `it is what Python computes from the documented text and key`() throws {
    // hmac(hkdf(secret, b"datavault pusher user 1 3"), salt + b"1234.1234:private-foobar:" + user)
    let expected =
      "278d425bdf160c739803:YW5hOmLDqQ.42dec9ee5e7540705925dacb4cd1e7315cf5005a8029db49523d30f2ab42b00e"
    let auth = try PusherUserSignature.sign(
      user, password: version, socketID: "1234.1234", channel: channel, under: application)
    #expect(auth == expected)
    let read = try #require(PusherUserSignature(auth, of: application))
    #expect(read.user == user)
    #expect(
      try read.authorizes(
        password: version, socketID: "1234.1234", channel: channel, under: application))
  }

  @Test func `it is good for one user, password, connection, channel and application`() throws {
    let auth = try PusherUserSignature.sign(
      user, password: version, socketID: "1234.1234", channel: channel, under: application)
    func authorizes(
      _ text: String? = nil, password: PasswordVersion? = nil, socket: String = "1234.1234",
      channel: String = "private-foobar", under other: Application? = nil
    ) throws -> Bool {
      let signature = try #require(PusherUserSignature(text ?? auth, of: application))
      return try signature.authorizes(
        password: password ?? version, socketID: socket, channel: ChannelName(channel),
        under: other ?? application)
    }
    #expect(try authorizes())
    #expect(try !authorizes(auth.replacing("YW5hOmLDqQ", with: "YW5h")))
    #expect(try !authorizes(password: Self.version(Array(1..<17))))
    #expect(try !authorizes(socket: "1234.1235"))
    #expect(try !authorizes(channel: "private-foobaz"))
    #expect(try !authorizes(under: Self.application(id: 4)))
    #expect(try !authorizes(under: Self.application(id: 3, secretKey: "other")))
    #expect(try !authorizes(String(auth.dropLast())))
  }

  @Test func `it is none of Pusher's signatures, and those are none of it`() throws {
    let code = "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4"
    for text in [
      "\(Self.key):\(code)", "\(Self.key):", "\(Self.key):.", "\(Self.key):!.x",
      "\(Self.key):YQ.b.c",
      "other:YW5hOmLDqQ.\(code)", "", ":", "YW5hOmLDqQ.\(code)",
    ] {
      #expect(PusherUserSignature(text, of: application) == nil, "\(text)")
    }
    let auth = try PusherUserSignature.sign(
      user, password: version, socketID: "1234.1234", channel: channel, under: application)
    #expect(
      try !PusherSignature.authorizes(
        auth, socketID: "1234.1234", channel: channel, channelData: nil, under: application))
  }
}
