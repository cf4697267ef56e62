import TestSupport
import Testing
import VaultCrypto

@testable import Replication

@Suite struct JoinRequestTests {
  private static let member = MemberID(0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F)

  private static func request() throws -> JoinRequest {
    try JoinRequest(
      member: member,
      keys: NodeKeys(decoding: SecretBytes(copying: [1] + [UInt8](repeating: 7, count: 64))))
  }

  @Test func `a request is read as it was written`() throws {
    let request = try Self.request()
    #expect(try JoinRequest(parsing: request.bytes) == request)
    #expect(request.member == Self.member)
    let text = String(decoding: request.bytes, as: UTF8.self)
    #expect(
      text.hasPrefix(
        #"{"version":1,"member":"000102030405060708090a0b0c0d0e0f","key":{"kty":"OKP","crv":"X25519","x":""#
      ))
    #expect(text.hasSuffix("\"}\n"))
  }

  @Test func `members of a request can have any order`() throws {
    let request = try Self.request()
    let key = String(decoding: Base64URL.encode(request.invitationKey), as: UTF8.self)
    let text = """
      { "nkey": "\(request.userKey.text)", "key": {"x": "\(key)", "kty": "OKP", "crv": "X25519"},
        "member": "000102030405060708090a0b0c0d0e0f", "version": 1 }
      """
    #expect(try JoinRequest(parsing: Array(text.utf8)) == request)
  }

  @Test func `a changed, cut or longer request is refused or has another fingerprint`() throws {
    let request = try Self.request()
    let fingerprint = try request.fingerprint()
    for index in request.bytes.indices.dropLast() {
      for bit in 0..<8 {
        var bytes = request.bytes
        bytes[index] ^= 1 << UInt8(bit)
        guard let other = try? JoinRequest(parsing: bytes) else { continue }
        let isOther = try other.fingerprint() != fingerprint
        #expect(isOther, "bit \(bit) of byte \(index)")
      }
      #expect(throws: JoinError.self) {
        _ = try JoinRequest(parsing: Array(request.bytes[..<index]))
      }
    }
    #expect(throws: JoinError.self) { _ = try JoinRequest(parsing: request.bytes + [0x20, 0x7B]) }
    let space = [UInt8](repeating: 0x20, count: JoinRequest.mostBytes)
    #expect(throws: JoinError.notARequest) { _ = try JoinRequest(parsing: request.bytes + space) }
  }

  @Test(arguments: [
    ("\"version\":1", "\"version\":2"), ("\"version\":1", "\"version\":\"1\""),
    ("\"version\":1,", ""), ("\"version\":1", "\"version\":1,\"version\":1"),
    ("\"version\":1", "\"version\":1,\"other\":1"), ("0e0f\"", "0E0F\""), ("0e0f\"", "0e\""),
    ("\"member\":\"00", "\"member\":\"+0"), ("\"OKP\"", "\"EC\""), ("\"X25519\"", "\"Ed25519\""),
    ("\"crv\"", "\"d\":\"QQ\",\"crv\""), ("\"nkey\":\"U", "\"nkey\":\"SU"),
  ])
  func `a request of another form is refused`(_ found: String, _ replacement: String) throws {
    let text = String(decoding: try Self.request().bytes, as: UTF8.self)
    try #require(text.contains(found))
    let changed = text.replacing(found, with: replacement)
    #expect(throws: JoinError.self) { _ = try JoinRequest(parsing: Array(changed.utf8)) }
  }

  @Test func `a request whose key gives no secret gets no invitation`() throws {
    let request = try Self.request()
    let zero = String(decoding: Base64URL.encode([UInt8](repeating: 0, count: 32)), as: UTF8.self)
    let key = String(decoding: Base64URL.encode(request.invitationKey), as: UTF8.self)
    let text = String(decoding: request.bytes, as: UTF8.self).replacing(key, with: zero)
    let changed = try JoinRequest(parsing: Array(text.utf8))
    #expect(throws: JoinError.invalidKey) {
      _ = try Invitation(
        to: changed, KeyRing(newShard: .system), settings: SecretBytes(zeroCount: 0),
        random: .system)
    }
  }

  @Test func `a fingerprint is that of the specification, and depends on all of the request`()
    throws
  {
    let request = try Self.request()
    let label = Array("datavault/replication/join-request".utf8)
    let bytes =
      label + Array(UInt8(0)...15) + request.invitationKey + request.userKey.bytes
    let digest = try SHA256.digest(bytes.span.bytes)
    let text = Base32.encode(digest).prefix(25)
    let fingerprint = try request.fingerprint()
    #expect(fingerprint.description.filter { $0 != "-" } == text)
    let others = [
      try JoinRequest(member: Self.member, keys: NodeKeys(from: .system)),
      try JoinRequest(
        member: MemberID(1),
        keys: NodeKeys(decoding: SecretBytes(copying: [1] + [UInt8](repeating: 7, count: 64)))),
      try JoinRequest(
        member: Self.member,
        keys: NodeKeys(
          decoding: SecretBytes(
            copying: [1] + [UInt8](repeating: 7, count: 32) + [UInt8](repeating: 8, count: 32)))),
    ]
    for other in others {
      let isOther = try other.fingerprint() != fingerprint
      #expect(isOther)
    }
  }

  @Test func `a fingerprint is read as operators type it`() throws {
    let fingerprint = Fingerprint(digest: [UInt8](repeating: 0xA5, count: 32))
    #expect(fingerprint.description == "UWS2L-JNFUW-S2LJN-FUWS2-LJNFU")
    let typed = [
      "UWS2L-JNFUW-S2LJN-FUWS2-LJNFU", "uws2ljnfuws2ljnfuws2ljnfu",
      " uws2l jnfuw s2ljn fuws2 ljnfu ",
    ]
    for text in typed { #expect(Fingerprint(text) == fingerprint) }
    let wrong = [
      "", "UWS2L-JNFUW-S2LJN-FUWS2-LJNF", "UWS2L-JNFUW-S2LJN-FUWS2-LJNFUA",
      "UWS2L-JNFUW-S2LJN-FUWS2-LJNF1", "ÜWS2L-JNFUW-S2LJN-FUWS2-LJNFU",
    ]
    for text in wrong { #expect(Fingerprint(text) == nil) }
    #expect(Fingerprint("UWS2L-JNFUW-S2LJN-FUWS2-LJNFV") != fingerprint)
  }
}
