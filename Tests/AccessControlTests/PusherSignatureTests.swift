import AccessControl
import Foundation
import TestSupport
import Testing
import VaultCrypto

/// The vectors that Pusher publishes, and the spellings that stock SDKs sign.
@Suite struct PusherSignatureTests {
  private let application: Application
  private static let time = Date(timeIntervalSince1970: 1_353_088_179)
  private static let body = #"{"name":"foo","channels":["project-3"],"data":"{\"some\":\"data\"}"}"#
  private static let post =
    "/apps/3/events?auth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0"
    + "&body_md5=ec365a775a4cd0599faeb73354201b6f"
    + "&auth_signature=da454824c97ba181a32ccc17a72625ba02771f50b50e1e7430e47a1f3f457e6c"

  init() throws {
    application = try Application(
      id: ApplicationID(3), name: "shop", publishKey: "pub", subscribeKey: "278d425bdf160c739803",
      secretKey: SecretKey(secret("7ad3773142a6692b25b8")))
  }

  private func authorizes(
    _ code: String, _ channel: String, _ data: String? = nil, key: String = "278d425bdf160c739803",
    socket: String = "1234.1234"
  ) throws -> Bool {
    try PusherSignature.authorizes(
      "\(key):\(code)", socketID: socket, channel: ChannelName(channel), channelData: data,
      under: application)
  }

  private func verify(
    _ target: String, method: String = "POST", body: String = body, at now: Date = time
  ) throws -> PusherSignature {
    try PusherSignature.of(
      RawRequest(method: method, target: Array(target.utf8), body: Array(body.utf8)),
      under: application, at: now)
  }

  /// The target of a signed request without a body, with the query as it is sent and as it is signed.
  private func target(
    _ path: String, _ sent: String, signed: String? = nil, path signedPath: String? = nil
  ) throws -> String {
    let head = "auth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0"
    let text = "GET\n\(signedPath ?? path)\n\(head)&\(signed ?? sent)"
    let bytes = Array(text.utf8)
    let code = try HMAC.sha256(key: secret("7ad3773142a6692b25b8"), message: bytes.span.bytes)
    let digits = code.map { String(format: "%02x", $0) }.joined()
    return "\(path)?auth_key=278d425bdf160c739803&auth_signature=\(digits)"
      + "&auth_timestamp=1353088179&auth_version=1.0&\(sent)"
  }

  // MARK: - Channels

  @Test(arguments: [
    ("58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4", "private-foobar", nil),
    (
      "31935e7d86dba64c2a90aed31fdc61869f9b22ba9d8863bba239c03ca481bc80", "presence-foobar",
      #"{"user_id":10,"user_info":{"name":"Mr. Channels"}}"#
    ),
    (
      "afaed3695da2ffd16931f457e338e6c9f2921fa133ce7dac49f529792be6304c", "presence-foobar",
      #"{"user_id":10,"user_info":{"name":"Mr. Pusher"}}"#
    ),
  ])
  func `the published vectors authorize their channels`(
    code: String, channel: String, data: String?
  ) throws {
    #expect(try authorizes(code, channel, data))
    #expect(try !authorizes(code, channel + "x", data))
    #expect(try !authorizes(code, channel, data, socket: "1234.1235"))
    #expect(try !authorizes(code, channel, data, key: "278d425bdf160c739804"))
    #expect(try !authorizes(code, channel, (data ?? "") + " "))
    #expect(try !authorizes(code.uppercased(), channel, data))
    #expect(try !authorizes(String(code.dropLast()), channel, data))
    #expect(try !authorizes("", channel, data))
  }

  @Test func `the signature of a user is none of a channel`() throws {
    let code = "4708d583dada6a56435fb8bc611c77c359a31eebde13337c16ab43aa6de336ba"
    #expect(try !authorizes(code, "user", #"{"id":"12345"}"#))
    // A name with a colon would make one of the other.
    #expect(try authorizes(code, ":user", #":{"id":"12345"}"#))
  }

  // MARK: - Requests

  @Test func `the published vector of a POST is valid, and covers all its parts`() throws {
    #expect(try verify(Self.post) == .valid)
    #expect(try verify(Self.post, method: "PUT") == .mismatch)
    #expect(try verify(Self.post.replacing("apps/3", with: "apps/4")) == .mismatch)
    #expect(try verify(Self.post + "&socket_id=1.2") == .mismatch)
    #expect(try verify(Self.post, body: Self.body + " ") == .otherBody)
    #expect(try verify(Self.post, body: "") == .otherBody)
    #expect(try verify(Self.post.replacing("457e6c", with: "457e6d")) == .mismatch)
  }

  @Test func `the published vector of a GET needs no body_md5`() throws {
    let target =
      "/apps/3/channels?auth_key=278d425bdf160c739803&auth_timestamp=1353088179&auth_version=1.0"
      + "&filter_by_prefix=presence-&info=user_count"
      + "&auth_signature=16819168891cb5dfd72b5c7a5d3d602605b26c6ba1930033b5e2eeeb65010291"
    #expect(try verify(target, method: "GET", body: "") == .valid)
    // A body that no digest names is not accepted, over TLS neither.
    #expect(try verify(target, method: "GET", body: "x") == .otherBody)
  }

  @Test func `a timestamp can be 600 seconds away`() throws {
    for distance in [-600.0, 600] {
      #expect(try verify(Self.post, at: Self.time + distance) == .valid)
      #expect(try verify(Self.post, at: Self.time + distance * 1.002) == .invalidTimestamp)
    }
    #expect(
      try verify(Self.post.replacing("auth_timestamp=1353088179&", with: "")) == .invalidTimestamp)
    #expect(try verify(Self.post + "&auth_timestamp=1353088179") == .invalidTimestamp)
    #expect(
      try verify(Self.post.replacing("1353088179", with: "1353088179.5")) == .invalidTimestamp)
  }

  @Test(arguments: ["auth_version=1.1", "auth_version=", "auth_version=1.0%26x=1"])
  func `another version is refused`(version: String) throws {
    #expect(try verify(Self.post.replacing("auth_version=1.0", with: version)) == .mismatch)
  }

  @Test func `Python sends body_md5 of nothing with a GET`() throws {
    let query = "body_md5=d41d8cd98f00b204e9800998ecf8427e"
    #expect(try verify(target("/apps/3/channels", query), method: "GET", body: "") == .valid)
    let other = "body_md5=d41d8cd98f00b204e9800998ecf8427f"
    #expect(try verify(target("/apps/3/channels", other), method: "GET", body: "") == .otherBody)
  }

  @Test func `Python signs the values decoded, and a plus as a plus`() throws {
    let sent = "filter_by_prefix=presence-%C3%A9%20x+y"
    let signed = "filter_by_prefix=presence-é x+y"
    let one = try target("/apps/3/channels", sent, signed: signed)
    #expect(try verify(one, method: "GET", body: "") == .valid)
    let form = try target("/apps/3/channels", sent, signed: "filter_by_prefix=presence-é x y")
    #expect(try verify(form, method: "GET", body: "") == .valid)
    let raw = try target("/apps/3/channels", sent, signed: sent)
    #expect(try verify(raw, method: "GET", body: "") == .mismatch)
  }

  @Test func `PHP encodes the comma of info, and names are signed in lower case`() throws {
    let one = try target("/apps/3/channels/c", "Info=a%2Cb", signed: "info=a,b")
    #expect(try verify(one, method: "GET", body: "") == .valid)
  }

  @Test func `a path is signed as it is sent, or decoded`() throws {
    let raw = "/apps/3/channels/presence-a_=@,.;B"
    #expect(try verify(target(raw, "info=x"), method: "GET", body: "") == .valid)
    let encoded = "/apps/3/channels/presence-a_=%40,.%3BB"
    #expect(try verify(target(encoded, "info=x"), method: "GET", body: "") == .valid)
    #expect(
      try verify(target(encoded, "info=x", path: raw), method: "GET", body: "") == .valid)
  }
}
