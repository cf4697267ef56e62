import Foundation
import StrictJSON
import TestSupport
import Testing

@testable import AccessControl

@Suite struct TokenTests {
  private static let entry = TokenRights.Entry("ch", [.read, .write])

  private static func contents(userID: String? = "u 1") throws -> TokenContents {
    try TokenContents(
      issue: start, minutes: 15,
      resources: TokenRights(
        channels: [entry, TokenRights.Entry("größe", .all)],
        groups: [TokenRights.Entry("g", .manage)], spaces: [entry], users: [entry],
        uuids: [TokenRights.Entry("u", .get)]),
      patterns: TokenRights(channels: [TokenRights.Entry("^a-[0-9]+$", .read)]),
      meta: [
        JSONMember("text", "x"), JSONMember("numbers", [0, 23, 24, 255, 256, 65536, -1, -300]),
        JSONMember("fraction", .number(1.5)), JSONMember("yes", true), JSONMember("none", .null),
        JSONMember("map", ["a": ["b": 1]]),
      ], authorizedUserID: userID)
  }

  /// The bytes that RFC 8949 and the table of the specification demand, written by hand.
  @Test func `a token has the bytes of its specification`() throws {
    let contents = try TokenContents(
      issue: start, minutes: 15, resources: TokenRights(channels: [TokenRights.Entry("c", .read)]))
    let kinds = "4367 7270 A0 4373 7063 A0 4375 7372 A0 4475 7569 64 A0"
    let expected =
      "A6 4176 02 4174 1A6553F100 4374 746C 0F 4372 6573 A5 4463 6861 6E A1 6163 01 \(kinds)"
      + "4370 6174 A5 4463 6861 6E A0 \(kinds) 446D 6574 61 A0"
    #expect(hexadecimal(contents.unsigned) == expected.filter { $0 != " " })
    let signed = contents.encoded(signature: [UInt8](repeating: 0xEE, count: 32))
    let end = "4373 6967 5820".filter { $0 != " " } + String(repeating: "EE", count: 32)
    #expect(hexadecimal(signed).hasPrefix("A7"))
    #expect(hexadecimal(signed).hasSuffix(end))
  }

  @Test(arguments: ["u 1", nil])
  func `a token says what was put into it`(userID: String?) throws {
    let contents = try Self.contents(userID: userID)
    let signer = try TokenSigner(application())
    let text = try signer.issue(contents)
    #expect(text.utf8.count % 4 == 0)
    for form in [text, String(text.prefix { $0 != "=" }), text + "="] {
      guard case .token(let token) = try signer.read(Array(form.utf8)) else {
        Issue.record("no token: \(form)")
        continue
      }
      #expect(token.contents == contents)
      #expect(token.end == minute(15))
      #expect(token.application == shop)
    }
  }

  @Test(.enabled(if: PubNubReader.isAvailable, PubNubReader.reason))
  func `the stock SDK and cbor2 read our tokens`() throws {
    let signer = try TokenSigner(application())
    let texts = [try signer.issue(Self.contents()), try signer.issue(Self.contents(userID: nil))]
    let read = try PubNubReader.objects("tokens", input: texts)
    #expect(read.count == 2)
    for (number, object) in read.enumerated() {
      let hasUserID = number % 2 == 0
      let keys = ["v", "t", "ttl", "res", "pat", "meta"] + (hasUserID ? ["uuid"] : []) + ["sig"]
      #expect(object["keys"] as? [String] == keys)
      #expect(object["kinds"] as? [String] == ["chan", "grp", "spc", "usr", "uuid"])
      #expect(object["signatureByteCount"] as? Int == 32)
      #expect(object["isSame"] as? Bool == true)
      let parsed = try #require(object["parsed"] as? [String: Any])
      #expect(parsed["version"] as? Int == 2)
      #expect(parsed["timestamp"] as? Int == 1_700_000_000)
      #expect(parsed["ttl"] as? Int == 15)
      #expect(parsed["authorized_uuid"] as? String == (hasUserID ? "u 1" : nil))
      #expect((parsed["meta"] as? [String: Any])?["fraction"] as? Double == 1.5)
      let resources = try #require(parsed["resources"] as? [String: [String: [String: Bool]]])
      #expect(resources["channels"]?["ch"]?["write"] == true)
      #expect(resources["channels"]?["ch"]?["manage"] == false)
      #expect(resources["channels"]?["größe"]?["delete"] == true)
      #expect(resources["groups"]?["g"]?["manage"] == true)
      let patterns = try #require(parsed["patterns"] as? [String: [String: [String: Bool]]])
      #expect(patterns["channels"]?["^a-[0-9]+$"]?["read"] == true)
    }
  }

  @Test func `a token with one changed bit, or cut off, is no token of ours`() throws {
    let signer = try TokenSigner(application())
    let bytes = try #require(
      Base64.decode(Array(try signer.issue(Self.contents()).utf8), alphabet: .url))
    for offset in bytes.indices {
      for bit in [0, 3, 7] {
        var changed = bytes
        changed[offset] ^= 1 << UInt8(bit)
        #expect(try !isToken(changed, signer), "byte \(offset), bit \(bit)")
      }
      #expect(try !isToken(Array(bytes[..<offset]), signer), "cut at \(offset)")
    }
    #expect(try !isToken(bytes + [0], signer))
  }

  @Test func `a token of another application or another secret key is forged`() throws {
    let text = try TokenSigner(application()).issue(Self.contents())
    for other in [
      application(bank, name: "bank"), application(bank, name: "shop"),
      application(shop, name: "bank"),
    ] {
      guard case .forged = try TokenSigner(other).read(Array(text.utf8)) else {
        Issue.record("not forged")
        continue
      }
    }
  }

  @Test(arguments: [
    "", "k", "my auth+key", "qEF2AkF0", "====", "A", String(repeating: "A", count: 99),
  ])
  func `an auth key is no token`(text: String) throws {
    guard case .other = try TokenSigner(application()).read(Array(text.utf8)) else {
      Issue.record("a token")
      return
    }
  }

  /// Other encodings of the same values, signed as if they were ours.
  @Test(arguments: [
    ("a number that is not in its shortest form", "4176 02", "4176 1802"),
    ("a length that is not in its shortest form", "4176 02", "5801 76 02"),
    ("a time of 8 bytes", "1A6553F100", "1B000000006553F100"),
    ("a map without an end mark", "446D 6574 61 A0", "446D 6574 61 BFFF"),
    ("a tag", "4176 02", "4176 C102"),
    ("a name twice", "A1 6163 01", "A2 6163 01 6163 01"),
    ("a key as text", "4176 02", "6176 02"),
    ("a name as bytes", "A1 6163 01", "A1 4163 01"),
    ("rights above all", "A1 6163 01", "A1 6163 190200"),
    ("another version", "4176 02", "4176 03"),
    ("no lifetime", "4374 746C 0F", "4374 746C 00"),
    ("a lifetime above the greatest", "4374 746C 0F", "4374 746C 19A8C1"),
    ("a name that is not UTF-8", "A1 6163 01", "A1 61FF 01"),
    ("meta that is no map", "446D 6574 61 A0", "446D 6574 61 80"),
    ("an undefined value in meta", "446D 6574 61 A0", "446D 6574 61 A1 6161 F7"),
    ("a half in meta", "446D 6574 61 A0", "446D 6574 61 A1 6161 F93C00"),
    ("not a number in meta", "446D 6574 61 A0", "446D 6574 61 A1 6161 FB7FF8000000000000"),
    ("bytes in meta", "446D 6574 61 A0", "446D 6574 61 A1 6161 4161"),
    ("a map longer than the token", "A1 6163 01", "BB00000000FFFFFFFF 6163 01"),
  ])
  func `a reader refuses`(what: String, part: String, instead: String) throws {
    let contents = try TokenContents(
      issue: start, minutes: 15, resources: TokenRights(channels: [TokenRights.Entry("c", .read)]))
    let whole = hexadecimal(contents.encoded(signature: [UInt8](repeating: 1, count: 32)))
    let (part, instead) = (part.filter { $0 != " " }, instead.filter { $0 != " " })
    let range = try #require(whole.range(of: part))
    #expect(throws: CBORReader.Fault.self) {
      try TokenContents.decode(bytes(whole.replacingCharacters(in: range, with: instead)))
    }
    #expect(try TokenContents.decode(bytes(whole)).contents == contents)
  }

  @Test func `meta can be 16 deep and no deeper`() throws {
    func contents(_ depth: Int) throws -> TokenContents {
      let value = (1..<depth).reduce(JSONValue.integer(1)) { value, _ in [value] }
      return try TokenContents(
        issue: start, minutes: 1, resources: TokenRights(), meta: [JSONMember("m", value)])
    }
    let signer = try TokenSigner(application())
    _ = try signer.issue(contents(16))
    let error = #expect(throws: AccessError.self) { try signer.issue(contents(17)) }
    #expect(error?.code == .invalidToken)
  }

  @Test func `a token has at most 16,384 bytes`() throws {
    let entries = (0..<1000).map { TokenRights.Entry("channel number \($0)", .read) }
    let signer = try TokenSigner(application())
    let error = #expect(throws: AccessError.self) {
      try signer.issue(
        TokenContents(issue: start, minutes: 1, resources: TokenRights(channels: entries)))
    }
    #expect(error?.code == .invalidToken)
    _ = try signer.issue(
      TokenContents(
        issue: start, minutes: 1, resources: TokenRights(channels: Array(entries.prefix(500)))))
  }

  @Test(arguments: [0, -1, 43_201])
  func `a token refuses a lifetime out of range`(minutes: Int) {
    #expect(throws: AccessError.self) {
      try TokenContents(issue: start, minutes: minutes, resources: TokenRights())
    }
  }

  // MARK: - Decisions

  @Test func `a token decides alone, in an open application too`() throws {
    var index = access(grant(.all, on: .application), isOpen: true)
    index.put(grant(.all, on: channel("d")))
    let bearer = Principal.token(
      try token(TokenRights(channels: [TokenRights.Entry("c", .read)])), userID: nil)
    #expect(index.reason(bearer, .subscribe, channel("c")) == .tokenResource)
    #expect(index.reason(bearer, .publish, channel("c")) == .noGrant)
    #expect(index.reason(bearer, .subscribe, channel("d")) == .noGrant)
    #expect(index.reason(bearer, .hereNowEverywhere, .application) == .noGrant)
  }

  @Test func `the rights of a name and of all its patterns add up`() throws {
    let bearer = Principal.token(
      try token(
        TokenRights(channels: [TokenRights.Entry("chat-1", .read)]),
        patterns: TokenRights(channels: [
          TokenRights.Entry("^chat", .write), TokenRights.Entry("-[0-9]$", .delete),
        ])), userID: nil)
    let index = access()
    #expect(index.reason(bearer, .subscribe, channel("chat-1")) == .tokenResource)
    #expect(index.reason(bearer, .publish, channel("chat-1")) == .tokenPattern(0))
    #expect(index.reason(bearer, .deleteMessages, channel("chat-1")) == .tokenPattern(1))
    #expect(index.reason(bearer, .publish, channel("mychat")) == .noGrant)
    #expect(index.reason(bearer, .subscribe, group("chat-1")) == .noGrant)
  }

  @Test func `a token ends with its last minute, and the decision says so`() throws {
    let bearer = Principal.token(
      try token(TokenRights(channels: [TokenRights.Entry("c", .read)]), minutes: 5), userID: nil)
    let resource = Resource(channel("c"), of: shop)
    let index = access()
    let decision = index.decide(bearer, .subscribe, resource, at: minute(4.99))
    #expect(decision.isAllowed)
    #expect(decision.end == minute(5))
    #expect(index.reason(bearer, .subscribe, channel("c"), at: minute(5)) == .tokenExpired)
  }

  @Test(arguments: [("ana", true), ("Ana", false), ("", false), (nil, false)])
  func `a token for a user id is good with that id alone`(userID: String?, isAllowed: Bool) throws {
    let token = try token(
      TokenRights(channels: [TokenRights.Entry("c", .read)]), authorizedUserID: "ana")
    let bearer = Principal.token(token, userID: userID)
    #expect(access().allows(bearer, .subscribe, channel("c")) == isAllowed)
    #expect(isAllowed || access().reason(bearer, .subscribe, channel("c")) == .otherUser)
  }

  @Test func `a token can give leases`() throws {
    let bearer = Principal.token(
      try token(TokenRights(channels: [TokenRights.Entry("c", .lease)])), userID: nil)
    #expect(access().allows(bearer, .lease, consumer("w", of: "c")))
    #expect(!access().allows(bearer, .subscribe, channel("c")))
  }

  private func isToken(_ bytes: [UInt8], _ signer: TokenSigner) throws -> Bool {
    let text = Base64.encode(bytes, padded: true)
    if case .token = try signer.read(Array(text.utf8)) { return true }
    return false
  }

  private func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { String(format: "%02X", $0) }.joined()
  }

  private func bytes(_ text: String) -> [UInt8] {
    let digits = text.utf8.compactMap(\.hexadecimalDigit)
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
