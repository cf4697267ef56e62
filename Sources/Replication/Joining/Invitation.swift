package import VaultCrypto

/// The answer to a join request: the key ring, and what a joiner must know, encrypted for one node.
///
/// See `docs/reference/replication-format.md`, "An invitation".
package struct Invitation: Sendable {
  /// The most bytes of a file.
  package static let mostBytes = 128 << 10
  /// The most bytes of what goes with the ring.
  package static let mostSettingsBytes = 64 << 10

  private static let version: UInt8 = 1

  /// What a joiner gets.
  package struct Contents: ~Copyable, Sendable {
    package let ring: KeyRing
    /// What the inviting member has handed in; this format does not look into it.
    package let settings: SecretBytes
  }

  /// The serialization.
  package let bytes: [UInt8]
  /// What an operator brings from the inviting member to the joiner.
  package let fingerprint: Fingerprint
  private let envelope: CompactJWE

  /// Encrypts a ring for the node that has written a request.
  ///
  /// An operator must have compared the request's fingerprint before: it says who gets the ring.
  ///
  /// - Throws: ``JoinError`` if the settings are too large, or the request's key is none; `CryptoError`.
  package init(
    to request: JoinRequest, _ ring: borrowing KeyRing, settings: borrowing SecretBytes,
    random: RandomSource
  ) throws {
    guard settings.byteCount <= Self.mostSettingsBytes else { throw JoinError.settingsTooLarge }
    envelope = try Self.seal(
      Self.plaintext(ring.encodedBytes(), settings), for: request, random: random)
    bytes = envelope.bytes
    fingerprint = try Self.fingerprint(of: bytes)
  }

  /// Reads a file, without opening it.
  ///
  /// - Throws: ``JoinError`` unless it has the form of an invitation; `CryptoError`.
  package init(parsing file: [UInt8]) throws {
    guard file.count <= Self.mostBytes else { throw JoinError.notAnInvitation }
    bytes = file.last == UInt8(ascii: "\n") ? file.dropLast() : file
    guard let envelope = CompactJWE(parsing: bytes) else { throw JoinError.notAnInvitation }
    self.envelope = envelope
    fingerprint = try Self.fingerprint(of: bytes)
  }

  /// Opens the invitation to this node.
  ///
  /// - Parameters:
  ///   - member: the id in the request that the node has written.
  ///   - confirmed: the fingerprint that an operator has read at the inviting member. Without it anybody could
  ///     make the node join a shard of their own.
  /// - Throws: ``JoinError`` if the fingerprint is another, the invitation answers another request, or it does not
  ///   open; ``KeyRingError``; `CryptoError` if OpenSSL failed.
  package func open(
    with keys: borrowing NodeKeys, member: MemberID, confirmed: Fingerprint
  ) throws -> Contents {
    guard fingerprint == confirmed else { throw JoinError.otherFingerprint }
    guard try JoinRequest(member: member, keys: keys).digest() == envelope.recipient else {
      throw JoinError.otherRequest
    }
    do {
      return try Self.contents(envelope.open(keys.invitationKey()))
    } catch let error as CryptoError where error.code != .libraryFailure {
      throw JoinError.notOpened
    }
  }

  private static func seal(
    _ plaintext: borrowing SecretBytes, for request: JoinRequest, random: RandomSource
  ) throws -> CompactJWE {
    let digest = try request.digest()
    do {
      return try CompactJWE(
        sealing: plaintext, to: request.invitationKey, recipient: digest, random: random)
    } catch let error where error.code == .invalidArgument {
      throw JoinError.invalidKey
    }
  }

  private static func fingerprint(of bytes: [UInt8]) throws(CryptoError) -> Fingerprint {
    Fingerprint(digest: try Fingerprint.digest("datavault/replication/invitation", bytes))
  }

  // MARK: - The plaintext: version, ring, settings

  private static func plaintext(
    _ ring: borrowing SecretBytes, _ settings: borrowing SecretBytes
  ) -> SecretBytes {
    var head = RecordWriter()
    head.append(version)
    head.append(UInt32(ring.byteCount))
    var middle = RecordWriter()
    middle.append(UInt32(settings.byteCount))
    let ringRange = head.bytes.count..<head.bytes.count + ring.byteCount
    let settingsStart = ringRange.upperBound + middle.bytes.count
    return unsafe SecretBytes(byteCount: settingsStart + settings.byteCount) { target in
      func part(from offset: Int) -> UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[offset...])
      }
      unsafe target.copyBytes(from: head.bytes)
      unsafe ring.withUnsafeBytes { unsafe part(from: ringRange.lowerBound).copyMemory(from: $0) }
      unsafe part(from: ringRange.upperBound).copyBytes(from: middle.bytes)
      unsafe settings.withUnsafeBytes { unsafe part(from: settingsStart).copyMemory(from: $0) }
    }
  }

  private static func contents(_ plaintext: borrowing SecretBytes) throws -> Contents {
    let count = plaintext.byteCount
    guard count > 0, plaintext.withBytes({ $0.number(at: 0, UInt8.self) }) == version else {
      throw JoinError.unknownVersion
    }
    let ring = try block(at: 1, of: plaintext)
    let settings = try block(at: ring.upperBound, of: plaintext)
    guard settings.upperBound == count, settings.count <= mostSettingsBytes else {
      throw JoinError.notAnInvitation
    }
    return Contents(
      ring: try KeyRing(decoding: plaintext.copy(ring)), settings: plaintext.copy(settings))
  }

  /// The range of the bytes behind a length of 4 bytes.
  private static func block(
    at offset: Int, of plaintext: borrowing SecretBytes
  ) throws(JoinError) -> Range<Int> {
    guard plaintext.byteCount - offset >= 4 else { throw .notAnInvitation }
    let length = Int(plaintext.withBytes { $0.number(at: offset, UInt32.self) })
    guard length <= plaintext.byteCount - offset - 4 else { throw .notAnInvitation }
    return offset + 4..<offset + 4 + length
  }
}
