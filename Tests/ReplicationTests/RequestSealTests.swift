import TestSupport
import Testing
import VaultCrypto

@testable import Replication

@Suite struct RequestSealTests {
  private static let (requester, owner, third) = (MemberID(1), MemberID(2), MemberID(3))
  private static let id = RequestID(77)
  private static let request = RequestTests.requests[3]

  private static func ring() throws -> KeyRing {
    var ring = KeyRing(newShard: .system)
    try ring.addKey(from: .system)
    return ring
  }

  private static func seal(_ ring: borrowing KeyRing, _ member: MemberID) -> RequestSeal {
    RequestSeal(ring, member: member, random: .system)
  }

  @Test(arguments: [1, 2] as [UInt32])
  func `the owner opens a request, and its sender the reply`(_ key: UInt32) throws {
    let ring = try Self.ring()
    let (requester, owner) = (Self.seal(ring, Self.requester), Self.seal(ring, Self.owner))
    let sealed = try requester.seal(Self.request, id: Self.id, to: Self.owner, under: key)
    let received = try owner.openRequest(sealed)
    #expect(received.id == Self.id)
    #expect(received.sender == Self.requester)
    #expect(received.request == Self.request)
    for reply in RequestTests.replies {
      let answer = try owner.seal(reply, to: received, under: key)
      #expect(try requester.openReply(answer, to: Self.id, from: Self.owner) == reply)
    }
  }

  @Test func `a changed or cut request or reply does not open`() throws {
    let ring = try Self.ring()
    let (requester, owner) = (Self.seal(ring, Self.requester), Self.seal(ring, Self.owner))
    let sealed = try requester.seal(Self.request, id: Self.id, to: Self.owner, under: 2)
    let answer = try owner.seal(
      Reply.settled([.done]), to: owner.openRequest(sealed), under: 2)
    for index in sealed.indices {
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << UInt8(bit)
        #expect(throws: (any Error).self, "bit \(bit) of byte \(index)") {
          try owner.openRequest(changed)
        }
      }
      #expect(throws: (any Error).self) { try owner.openRequest(Array(sealed[..<index])) }
    }
    for index in answer.indices {
      for bit in 0..<8 {
        var changed = answer
        changed[index] ^= 1 << UInt8(bit)
        #expect(throws: (any Error).self, "bit \(bit) of byte \(index)") {
          try requester.openReply(changed, to: Self.id, from: Self.owner)
        }
      }
      #expect(throws: (any Error).self) {
        try requester.openReply(Array(answer[..<index]), to: Self.id, from: Self.owner)
      }
    }
  }

  /// Each field of the header, changed where the opening side has the same expectation, so that the seal alone refuses.
  @Test func `the seal binds direction, key, id, sender and recipient`() throws {
    let ring = try Self.ring()
    let (requester, owner) = (Self.seal(ring, Self.requester), Self.seal(ring, Self.owner))
    let sealed = try requester.seal(Self.request, id: Self.id, to: Self.owner, under: 2)
    func changed(_ range: Range<Int>, _ bytes: [UInt8]) -> [UInt8] {
      var copy = sealed
      copy.replaceSubrange(range, with: bytes)
      return copy
    }
    func identifier(_ member: MemberID) -> [UInt8] {
      [UInt8](repeating: 0, count: 15) + [UInt8(member.value)]
    }
    #expect(throws: CryptoError.self) { try owner.openRequest(changed(2..<6, [0, 0, 0, 1])) }
    #expect(throws: CryptoError.self) {
      try owner.openRequest(changed(6..<22, identifier(MemberID(78))))
    }
    #expect(throws: CryptoError.self) {
      try owner.openRequest(changed(22..<38, identifier(Self.third)))
    }
    #expect(throws: CryptoError.self) {
      try Self.seal(ring, Self.third).openRequest(changed(38..<54, identifier(Self.third)))
    }
    // A request that comes back as its own reply.
    let reflected = changed(1..<2, [2])
    #expect(throws: CryptoError.self) {
      try owner.openReply(reflected, to: Self.id, from: Self.requester)
    }
  }

  @Test func `another member, shard or ring does not open a request`() throws {
    let ring = try Self.ring()
    let sealed = try Self.seal(ring, Self.requester).seal(
      Self.request, id: Self.id, to: Self.owner, under: 1)
    #expect(throws: RequestError.otherRecipient) {
      try Self.seal(ring, Self.third).openRequest(sealed)
    }
    var bytes = ring.encodedBytes().array()
    bytes[1] ^= 1
    let otherShard = try KeyRing(decoding: SecretBytes(copying: bytes))
    #expect(throws: CryptoError.self) {
      try Self.seal(otherShard, Self.owner).openRequest(sealed)
    }
    bytes = ring.encodedBytes().array()
    bytes[54] ^= 1
    let otherKey = try KeyRing(decoding: SecretBytes(copying: bytes))
    #expect(throws: CryptoError.self) { try Self.seal(otherKey, Self.owner).openRequest(sealed) }
    var later = ring.copy()
    later.removeKeys(before: 2)
    #expect(throws: KeyRingError.self) { try Self.seal(later, Self.owner).openRequest(sealed) }
  }

  @Test func `a reply to another request, or of another member, is refused`() throws {
    let ring = try Self.ring()
    let requester = Self.seal(ring, Self.requester)
    let owner = Self.seal(ring, Self.owner)
    let sealed = try requester.seal(Self.request, id: Self.id, to: Self.owner, under: 1)
    let answer = try owner.seal(
      Reply.notOwner(nil), to: owner.openRequest(sealed), under: 1)
    #expect(throws: RequestError.otherReply) {
      try requester.openReply(answer, to: RequestID(78), from: Self.owner)
    }
    #expect(throws: RequestError.otherReply) {
      try requester.openReply(answer, to: Self.id, from: Self.third)
    }
    #expect(throws: RequestError.otherRecipient) {
      try Self.seal(ring, Self.third).openReply(answer, to: Self.id, from: Self.owner)
    }
    #expect(throws: RequestError.unreadable) {
      try requester.openReply(sealed, to: Self.id, from: Self.owner)
    }
  }

  @Test func `more than 512 KiB are neither sealed nor opened`() throws {
    let ring = try Self.ring()
    let requester = Self.seal(ring, Self.requester)
    func request(reasonByteCount: Int) -> Request {
      let settlement = LeaseSettlement(
        lease: LeaseID(1),
        outcome: .rejected(reason: String(repeating: "a", count: reasonByteCount)))
      return Request(
        epoch: EpochID(1), beat: 0, .settle([LeaseSettlement](repeating: settlement, count: 8)))
    }
    let large = try requester.seal(
      request(reasonByteCount: 65_000), id: Self.id, to: Self.owner, under: 1)
    _ = try Self.seal(ring, Self.owner).openRequest(large)
    #expect(throws: RequestError.tooLarge) {
      try requester.seal(
        request(reasonByteCount: 65_535), id: Self.id, to: Self.owner, under: 1)
    }
    #expect(throws: RequestError.tooLarge) {
      try Self.seal(ring, Self.owner).openRequest(
        large + [UInt8](repeating: 0, count: RequestSeal.mostBytes))
    }
  }

  @Test func `a key of records opens no request`() throws {
    let ring = try Self.ring()
    let sealed = try Self.seal(ring, Self.requester).seal(
      Self.request, id: Self.id, to: Self.owner, under: 1)
    let derived = try HKDF.sha512(
      inputKey: ring.key(1), salt: [], info: Array("datavault/replication/record".utf8),
      byteCount: 32)
    let cipher = try XAES256GCM(key: derived)
    var writer = RecordWriter()
    writer.append(ring.shard)
    writer.append(Array(sealed[..<54]))
    var message = Array(sealed[78...].dropLast(16))
    #expect(throws: CryptoError(.authenticationFailed, in: "XAES-256-GCM open")) {
      try cipher.open(
        &message, nonce: Array(sealed[54..<78]), authenticating: writer.bytes,
        tag: Array(sealed.suffix(16)))
    }
  }
}
