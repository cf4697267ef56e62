import Foundation
import TestSupport
import Testing
import VaultCrypto

@testable import Replication

/// A node that wants to join, its request, and the ring of a member that answers.
private struct Joiner: ~Copyable {
  let member = MemberID(0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F)
  let keys = NodeKeys(from: .system)
  let ring: KeyRing
  let settings = Array("nats://broker".utf8)

  init() throws {
    var ring = KeyRing(newShard: .system)
    try ring.addKey(from: .system)
    self.ring = ring
  }

  borrowing func request() throws -> JoinRequest { try JoinRequest(member: member, keys: keys) }

  borrowing func invitation() throws -> Invitation {
    try Invitation(
      to: request(), ring, settings: SecretBytes(copying: settings), random: .system)
  }

  /// Opens a file with the fingerprint that it has: what an operator would confirm who compares nothing.
  borrowing func open(_ file: [UInt8]) throws -> Invitation.Contents {
    let invitation = try Invitation(parsing: file)
    return try invitation.open(with: keys, member: member, confirmed: invitation.fingerprint)
  }
}

@Suite struct InvitationTests {
  @Test func `an invitation hands on the ring and the settings`() throws {
    let joiner = try Joiner()
    let file = try joiner.invitation().bytes
    for bytes in [file, file + Array("\n".utf8)] {
      let contents = try joiner.open(bytes)
      #expect(contents.ring.encodedBytes().array() == joiner.ring.encodedBytes().array())
      #expect(contents.settings.array() == joiner.settings)
    }
  }

  @Test func `an invitation opens only with the fingerprint that its member shows`() throws {
    let joiner = try Joiner()
    let invitation = try joiner.invitation()
    // What a person would send who has exchanged the file: a ring of their own, for the same request.
    let other = try Invitation(
      to: joiner.request(), KeyRing(newShard: .system),
      settings: SecretBytes(copying: joiner.settings), random: .system)
    let shown = try #require(Fingerprint(invitation.fingerprint.description))
    _ = try invitation.open(with: joiner.keys, member: joiner.member, confirmed: shown)
    #expect(throws: JoinError.otherFingerprint) {
      _ = try other.open(with: joiner.keys, member: joiner.member, confirmed: shown)
    }
  }

  @Test func `no other node opens an invitation`() throws {
    let joiner = try Joiner()
    let invitation = try joiner.invitation()
    let others = NodeKeys(from: .system)
    #expect(throws: JoinError.otherRequest) {
      _ = try invitation.open(
        with: others, member: joiner.member, confirmed: invitation.fingerprint)
    }
    #expect(throws: JoinError.otherRequest) {
      _ = try invitation.open(
        with: joiner.keys, member: MemberID(1), confirmed: invitation.fingerprint)
    }
    let envelope = try #require(CompactJWE(parsing: invitation.bytes))
    #expect(throws: CryptoError.self) { _ = try envelope.open(others.invitationKey()) }
  }

  @Test func `a changed, cut or longer invitation is refused`() throws {
    let joiner = try Joiner()
    let file = try joiner.invitation().bytes
    for index in file.indices {
      for bit in 0..<8 {
        var changed = file
        changed[index] ^= 1 << UInt8(bit)
        #expect(throws: (any Error).self, "bit \(bit) of byte \(index)") {
          _ = try joiner.open(changed)
        }
      }
      #expect(throws: (any Error).self, "\(index) bytes") {
        _ = try joiner.open(Array(file[..<index]))
      }
    }
    for end in ["=", " ", "\n\n", ".", "A"] {
      #expect(throws: (any Error).self) { _ = try joiner.open(file + Array(end.utf8)) }
    }
  }

  @Test(arguments: [
    ("alg", "\"ECDH-ES\""), ("alg", "\"ECDH-ES+A128KW\""), ("alg", "\"none\""), ("alg", "\"dir\""),
    ("enc", "\"A128GCM\""), ("enc", "\"A256CBC-HS512\""), ("typ", "\"JWT\""), ("apv", "\"A\""),
    ("zip", "\"DEF\""), ("crit", "[\"exp\"]"), ("apu", "\"QQ\""), ("p2c", "1000000000"),
    ("epk", #"{"kty":"EC","crv":"X25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#),
    ("epk", #"{"kty":"OKP","crv":"Ed25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#),
  ])
  func `an invitation with another header is refused`(_ name: String, _ value: String) throws {
    let joiner = try Joiner()
    let file = try joiner.invitation().bytes
    let parts = file.split(separator: UInt8(ascii: "."))
    let text = try #require(Base64URL.decode(parts[0]))
    var header = try #require(
      try JSONSerialization.jsonObject(with: Data(text)) as? [String: Any])
    func envelope() throws -> CompactJWE? {
      let text = try JSONSerialization.data(withJSONObject: header)
      return CompactJWE(
        parsing: Base64URL.encode(Array(text)) + file.dropFirst(parts[0].count))
    }
    #expect(try envelope() != nil)
    header[name] = try JSONSerialization.jsonObject(
      with: Data(value.utf8), options: .fragmentsAllowed)
    #expect(try envelope() == nil)
  }

  @Test func `a file beyond the bound is not read`() throws {
    let joiner = try Joiner()
    let file = try joiner.invitation().bytes
    let huge = file + [UInt8](repeating: UInt8(ascii: "A"), count: Invitation.mostBytes)
    #expect(throws: JoinError.notAnInvitation) { _ = try Invitation(parsing: huge) }
    #expect(throws: JoinError.settingsTooLarge) {
      _ = try Invitation(
        to: joiner.request(), joiner.ring,
        settings: SecretBytes(zeroCount: Invitation.mostSettingsBytes + 1), random: .system)
    }
    var ring = KeyRing(newShard: .system)
    for _ in 1..<KeyRing.mostKeys { try ring.addKey(from: .system) }
    let largest = try Invitation(
      to: joiner.request(), ring,
      settings: SecretBytes(zeroCount: Invitation.mostSettingsBytes), random: .system)
    let contents = try joiner.open(largest.bytes)
    #expect(contents.settings.byteCount == Invitation.mostSettingsBytes)
    #expect(contents.ring.keyNumbers == 1...64)
  }

  @Test func `a plaintext of another form is refused`() throws {
    let joiner = try Joiner()
    let request = try joiner.request()
    let ring = joiner.ring.encodedBytes().array()
    let count = UInt8(ring.count)
    let good = [1, 0, 0, 0, count] + ring + [0, 0, 0, 2, 7, 7]
    func open(_ plaintext: [UInt8]) throws -> Invitation.Contents {
      let envelope = try CompactJWE(
        sealing: SecretBytes(copying: plaintext), to: request.invitationKey,
        recipient: request.digest(), random: .system)
      return try joiner.open(envelope.bytes)
    }
    #expect(try open(good).settings.array() == [7, 7])
    for length in good.indices {
      #expect(throws: (any Error).self) { _ = try open(Array(good[..<length])) }
    }
    #expect(throws: (any Error).self) { _ = try open(good + [0]) }
    #expect(throws: JoinError.unknownVersion) { _ = try open([2] + good.dropFirst()) }
    #expect(throws: (any Error).self) { _ = try open([1, 255, 255, 255, 255] + good.dropFirst(5)) }
  }

  // MARK: - joserfc

  private static let python = Program.python(
    with: "joserfc", variable: "DATAVAULT_JOSERFC_PYTHON", environment: "joserfc")
  private static let skipReason: Comment = """
    no python3 has joserfc: `pip install joserfc==1.6.5`, or name one that has it in \
    DATAVAULT_JOSERFC_PYTHON
    """

  private static func joserfc(_ mode: String, _ input: [String: String]) throws -> [String: Any] {
    let script = Repository.path("Tests/ReferenceReaders/invitation_reader.py")
    let program = try Program.run(
      try #require(python), [script, mode],
      input: Array(try JSONSerialization.data(withJSONObject: input)))
    try #require(program.status == 0, "\(program.errors)")
    return try #require(
      try JSONSerialization.jsonObject(with: Data(program.output)) as? [String: Any])
  }

  private static func text(_ bytes: [UInt8]) -> String {
    String(decoding: Base64URL.encode(bytes), as: UTF8.self)
  }

  @Test(.enabled(if: python != nil, skipReason))
  func `joserfc opens what we seal`() throws {
    let joiner = try Joiner()
    let invitation = try joiner.invitation()
    let opened = try Self.joserfc(
      "open",
      [
        "private": Self.text(joiner.keys.invitationKey().array()),
        "public": Self.text(try joiner.keys.invitationPublicKey()),
        "invitation": String(decoding: invitation.bytes, as: UTF8.self),
      ])
    let ring = joiner.ring.encodedBytes().array()
    let plaintext =
      [1, 0, 0, 0, UInt8(ring.count)] + ring
      + [0, 0, 0, UInt8(joiner.settings.count)] + joiner.settings
    #expect(opened["plaintext"] as? String == plaintext.hexadecimal)
  }

  @Test(.enabled(if: python != nil, skipReason))
  func `we open what joserfc seals`() throws {
    let joiner = try Joiner()
    let request = try joiner.request()
    let ring = joiner.ring.encodedBytes().array()
    let plaintext = [1, 0, 0, 0, UInt8(ring.count)] + ring + [0, 0, 0, 1, 42]
    let sealed = try Self.joserfc(
      "seal",
      [
        "request": String(decoding: request.bytes, as: UTF8.self),
        "apv": Self.text(try request.digest()), "plaintext": plaintext.hexadecimal,
      ])
    let contents = try joiner.open(Array(try #require(sealed["invitation"] as? String).utf8))
    #expect(contents.ring.encodedBytes().array() == ring)
    #expect(contents.settings.array() == [42])
  }
}
