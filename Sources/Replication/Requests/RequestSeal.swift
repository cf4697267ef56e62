package import VaultCrypto

/// Seals and opens what members ask the owner of the leases, and its replies, with XAES-256-GCM.
///
/// The associated data binds each to its shard, direction, id, sender and recipient. All members have the same key:
/// the seal proves that the sender is one of them. See `docs/reference/replication-format.md`, "Requests". Only one
/// thread at a time can use it.
package final class RequestSeal {
  /// The most bytes of a sealed request or reply.
  package static let mostBytes = 512 << 10

  private static let version: UInt8 = 1
  private static let headerByteCount = 1 + 1 + 4 + 3 * 16
  private static let overheadByteCount =
    headerByteCount + XAES256GCM.nonceByteCount + XAES256GCM.tagByteCount

  private enum Direction: UInt8 {
    case request = 1
    case reply = 2
  }

  private struct Header {
    let direction: Direction
    let key: UInt32
    let id: RequestID
    let sender: MemberID
    let recipient: MemberID
  }

  /// A request that was opened.
  package struct Received: Sendable, Hashable {
    package let id: RequestID
    /// The member that it names, or another one that writes in its name.
    package let sender: MemberID
    package let request: Request
  }

  private let ciphers: CiphersOfRing<XAES256GCM>
  private let member: MemberID
  private let random: RandomSource

  /// - Parameter member: the member that sends and receives here.
  package init(_ ring: borrowing KeyRing, member: MemberID, random: RandomSource) {
    ciphers = CiphersOfRing(ring) { (_, key) throws(CryptoError) in
      let derived = try HKDF.sha512(
        inputKey: key, salt: [], info: Array("datavault/replication/request".utf8),
        byteCount: XAES256GCM.keyByteCount)
      return try XAES256GCM(key: derived)
    }
    self.member = member
    self.random = random
  }

  /// Seals a request.
  ///
  /// - Parameters:
  ///   - id: drawn for this request; one that is sent again is a new request.
  ///   - key: the number of the shard's current key.
  /// - Throws: ``RequestError``; ``KeyRingError`` if the ring has no such key; `CryptoError`.
  package func seal(
    _ request: Request, id: RequestID, to owner: MemberID, under key: UInt32
  ) throws -> [UInt8] {
    try seal(
      request.encoded(),
      Header(direction: .request, key: key, id: id, sender: member, recipient: owner))
  }

  /// Opens a request to this member.
  ///
  /// The caller must ask its ``RequestWindow`` whether it is a repeated one.
  ///
  /// - Throws: ``RequestError`` if it is for another member, or cannot be read; ``KeyRingError`` if the ring does not
  ///   have its key; `CryptoError` `authenticationFailed` if it was changed, or is of another shard.
  package func openRequest(_ bytes: [UInt8]) throws -> Received {
    let header = try Self.header(of: bytes, .request)
    guard header.recipient == member else { throw RequestError.otherRecipient }
    return Received(
      id: header.id, sender: header.sender, request: try Request(decoding: open(bytes, header)))
  }

  /// Seals a reply.
  ///
  /// - Throws: as ``seal(_:id:to:under:)``.
  package func seal(
    _ reply: Reply, to request: Received, under key: UInt32
  ) throws -> [UInt8] {
    try seal(
      reply.encoded(),
      Header(
        direction: .reply, key: key, id: request.id, sender: member, recipient: request.sender))
  }

  /// Opens the reply to a request.
  ///
  /// - Throws: ``RequestError`` if it answers another request, or is from or for another member; otherwise as
  ///   ``openRequest(_:)``.
  package func openReply(
    _ bytes: [UInt8], to id: RequestID, from owner: MemberID
  ) throws -> Reply {
    let header = try Self.header(of: bytes, .reply)
    guard header.recipient == member else { throw RequestError.otherRecipient }
    guard header.id == id, header.sender == owner else { throw RequestError.otherReply }
    return try Reply(decoding: open(bytes, header))
  }

  private func seal(_ plaintext: [UInt8], _ header: Header) throws -> [UInt8] {
    guard plaintext.count <= Self.mostBytes - Self.overheadByteCount else {
      throw RequestError.tooLarge
    }
    let head = Self.bytes(of: header)
    let nonce = random.bytes(count: XAES256GCM.nonceByteCount)
    var message = plaintext
    let tag = try ciphers.cipher(header.key).seal(
      &message, nonce: nonce, authenticating: associatedData(head))
    return head + nonce + message + tag
  }

  private func open(_ bytes: [UInt8], _ header: Header) throws -> [UInt8] {
    let sealed = bytes.dropFirst(Self.headerByteCount)
    var message = Array(
      sealed.dropFirst(XAES256GCM.nonceByteCount).dropLast(XAES256GCM.tagByteCount))
    try ciphers.cipher(header.key).open(
      &message, nonce: Array(sealed.prefix(XAES256GCM.nonceByteCount)),
      authenticating: associatedData(Array(bytes.prefix(Self.headerByteCount))),
      tag: Array(sealed.suffix(XAES256GCM.tagByteCount)))
    return message
  }

  private func associatedData(_ header: [UInt8]) -> [UInt8] {
    var writer = RecordWriter()
    writer.append(ciphers.shard)
    writer.append(header)
    return writer.bytes
  }

  private static func bytes(of header: Header) -> [UInt8] {
    var writer = RecordWriter()
    writer.append(version)
    writer.append(header.direction.rawValue)
    writer.append(header.key)
    writer.append(header.id)
    writer.append(header.sender)
    writer.append(header.recipient)
    return writer.bytes
  }

  private static func header(
    of bytes: [UInt8], _ expected: Direction
  ) throws(RequestError) -> Header {
    guard bytes.count <= mostBytes else { throw .tooLarge }
    guard bytes.count >= overheadByteCount else { throw .unreadable }
    var reader = RecordReader(Array(bytes.prefix(headerByteCount)))
    guard (try? reader.byte()) == version, (try? reader.byte()) == expected.rawValue,
      let key = try? reader.number(UInt32.self), let id = try? reader.identifier() as RequestID,
      let sender = try? reader.identifier() as MemberID,
      let recipient = try? reader.identifier() as MemberID
    else { throw .unreadable }
    return Header(direction: expected, key: key, id: id, sender: sender, recipient: recipient)
  }
}
