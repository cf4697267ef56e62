internal import StrictJSON
package import VaultCrypto

/// What a node writes to become a member: its id and its public keys, none of them secret.
///
/// See `docs/reference/replication-format.md`, "A join request".
package struct JoinRequest: Sendable, Hashable {
  /// The most bytes of a file.
  package static let mostBytes = 4096

  /// The id that the member will have.
  package let member: MemberID
  /// The X25519 key to which the invitation is encrypted, 32 bytes.
  let invitationKey: [UInt8]
  /// The key by which brokers know the node.
  package let userKey: NATSPublicKey

  package init(member: MemberID, keys: borrowing NodeKeys) throws(CryptoError) {
    self.member = member
    invitationKey = try keys.invitationPublicKey()
    userKey = try keys.userKey().publicKey
  }

  /// Reads a file.
  ///
  /// - Throws: ``JoinError``.
  package init(parsing bytes: [UInt8]) throws(JoinError) {
    guard bytes.count <= Self.mostBytes,
      let members = try? JSONReader.object(bytes, maximumDepth: 2),
      members.haveExactly(["version", "member", "key", "nkey"])
    else { throw .notARequest }
    guard members["version"]?.integer == 1 else { throw .unknownVersion }
    guard let member = members["member"]?.string.flatMap(MemberID.init(hexadecimal:)),
      let invitationKey = members["key"].flatMap(JSONWebKey.x25519),
      let userKey = members["nkey"]?.string.flatMap({ NATSPublicKey($0) })
    else { throw .notARequest }
    self.member = member
    self.invitationKey = invitationKey
    self.userKey = userKey
  }

  /// The bytes of the file.
  package var bytes: [UInt8] {
    let object: JSONValue = [
      "version": 1, "member": .string(member.hexadecimal), "key": JSONWebKey.value(invitationKey),
      "nkey": .string(userKey.text),
    ]
    return Array("\(object.text)\n".utf8)
  }

  /// What operators compare before a member writes an invitation.
  package func fingerprint() throws(CryptoError) -> Fingerprint {
    Fingerprint(digest: try digest())
  }

  /// What binds an invitation to this request.
  func digest() throws(CryptoError) -> [UInt8] {
    var writer = RecordWriter()
    writer.append(member)
    writer.append(invitationKey)
    writer.append(userKey.bytes)
    return try Fingerprint.digest("datavault/replication/join-request", writer.bytes)
  }
}

/// Why a join request or an invitation is refused.
package struct JoinError: Error, Sendable, Hashable {
  /// What is wrong.
  package let reason: String

  static let notARequest = JoinError(reason: "the file is not a join request")
  static let notAnInvitation = JoinError(reason: "the file is not an invitation")
  static let unknownVersion = JoinError(
    reason: "the file has a format version that this version does not know")
  static let settingsTooLarge = JoinError(
    reason: "the settings of an invitation have more than 65,536 bytes")
  package static let otherRequestFingerprint = JoinError(
    reason: "the join request does not have the fingerprint that was entered")
  static let otherFingerprint = JoinError(
    reason: "the invitation does not have the fingerprint that was entered")
  static let otherRequest = JoinError(
    reason: "the invitation answers the join request of another node")
  static let notOpened = JoinError(
    reason: "the invitation does not open: it was changed, or its request was")
  static let invalidKey = JoinError(reason: "the join request has no key that can be used")
}

/// X25519 public keys as JSON Web Keys (RFC 8037, section 2).
enum JSONWebKey {
  static func value(_ publicKey: [UInt8]) -> JSONValue {
    [
      "kty": "OKP", "crv": "X25519",
      "x": .string(String(decoding: Base64URL.encode(publicKey), as: UTF8.self)),
    ]
  }

  /// The 32 bytes of a key; nil for another kind of key, and for one with more members.
  static func x25519(_ value: JSONValue) -> [UInt8]? {
    guard let members = value.members, members.haveExactly(["kty", "crv", "x"]),
      members["kty"]?.string == "OKP", members["crv"]?.string == "X25519",
      let bytes = members["x"]?.string.flatMap({ Base64URL.decode($0.utf8) }),
      bytes.count == X25519.byteCount
    else { return nil }
    return bytes
  }
}

extension [JSONMember] {
  /// Whether the object has these members and no other.
  func haveExactly(_ names: [String]) -> Bool {
    count == names.count && names.allSatisfy { self[$0] != nil }
  }
}

extension Identifier {
  /// 32 lowercase digits.
  package var hexadecimal: String {
    var writer = RecordWriter()
    writer.append(self)
    return writer.bytes.hexadecimal
  }

  /// Reads 32 lowercase digits; nil for anything else.
  package init?(hexadecimal text: String) {
    guard text.utf8.count == 2 * Self.byteCount,
      text.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }),
      let value = UInt128(text, radix: 16)
    else { return nil }
    self.init(value)
  }
}
