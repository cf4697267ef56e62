internal import VaultCrypto

/// The member `key`: the vault key sealed under the content key, and the slots that wrap the
/// content key.
struct KeyEnvelope: Sendable, Equatable {
  static let maximumSlotCount = 16
  /// base64url of `{"enc":"A256GCM","cty":"jwk+json"}`.
  private static let protected = "eyJlbmMiOiJBMjU2R0NNIiwiY3R5IjoiandrK2pzb24ifQ"

  /// Each slot wraps the same content key.
  var slots: [KeySlot]
  /// The slot of the password; nil if the vault has none.
  var passwordSlot: KeySlot? { slots.first { $0.secretKind == .password } }
  private let nonce: [UInt8]
  private let box: AES256GCM.SealedBox

  /// Seals a vault key for slots that wrap this content key.
  init(
    sealing vaultKey: borrowing SecretBytes, under contentKey: borrowing SecretBytes,
    slots: [KeySlot], random: RandomSource
  ) throws(CryptoError) {
    let jwk = ByteWriter.secret { writer in
      writer.append("{\"kty\":\"oct\",\"k\":")
      writer.appendBase64URL(vaultKey)
      writer.append("}")
    }
    let nonce = random.bytes(count: AES256GCM.nonceByteCount)
    box = try jwk.withBytes { (jwk) throws(CryptoError) in
      try AES256GCM.seal(
        jwk, key: contentKey, nonce: nonce,
        authenticating: unsafe Array(Self.protected.utf8).span.bytes)
    }
    self.slots = slots
    self.nonce = nonce
  }

  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "key"
    let members = try JSONText.members(
      ["protected", "recipients", "iv", "ciphertext", "tag"], in: bytes, range, of: part)
    guard bytes.equals("\"\(Self.protected)\"".utf8, in: members[0]) else {
      throw FormatFault(part, "unknown algorithm")
    }
    slots = try Self.slots(parsing: bytes, members[1])
    (nonce, box) = try JWEText.sealedBox(
      bytes, nonce: members[2], ciphertext: members[3], tag: members[4], of: part)
  }

  private static func slots(
    parsing bytes: RawSpan, _ range: Range<Int>
  ) throws(FormatFault) -> [KeySlot] {
    let part = "key slots"
    let elements = try JSONText.elements(
      in: bytes, range, maximumCount: maximumSlotCount, of: part)
    guard !elements.isEmpty else { throw FormatFault(part, "the list is empty") }
    var slots: [KeySlot] = []
    for element in elements { slots.append(try KeySlot(parsing: bytes, element)) }
    guard Set(slots.map(\.identifier)).count == slots.count else {
      throw FormatFault(part, "two slots have the same name")
    }
    return slots
  }

  /// The member's JSON text, exactly as it is stored and digested.
  var text: String {
    """
    {"protected":"\(Self.protected)",\
    "recipients":[\(slots.map(\.text).joined(separator: ","))],\
    "iv":"\(base64URLText(nonce))","ciphertext":"\(base64URLText(box.ciphertext))",\
    "tag":"\(base64URLText(box.tag))"}
    """
  }

  /// Opens the vault key.
  ///
  /// - Throws: a fault when the content key is wrong or the opened JWK is invalid.
  func vaultKey(contentKey: borrowing SecretBytes) throws(FormatFault) -> SecretBytes {
    let jwk: SecretBytes
    do throws(CryptoError) {
      jwk = try AES256GCM.open(
        box, key: contentKey, nonce: nonce,
        authenticating: unsafe Array(Self.protected.utf8).span.bytes)
    } catch {
      throw FormatFault("key", "does not open with its content key")
    }
    return try jwk.withBytes { (jwk) throws(FormatFault) in
      let part = "vault key"
      let members = try JSONText.members(["kty", "k"], in: jwk, 0..<jwk.byteCount, of: part)
      guard jwk.equals("\"oct\"".utf8, in: members[0]) else {
        throw FormatFault(part, "unknown key type")
      }
      let key = try Base64URL.decodeSecret(
        jwk, try JSONText.plainString(in: jwk, members[1], of: part), of: part)
      guard key.byteCount == 32 else { throw FormatFault(part, "the key is not 32 bytes long") }
      return key
    }
  }

  func opens(with contentKey: borrowing SecretBytes) -> Bool {
    (try? vaultKey(contentKey: contentKey)) != nil
  }
}

/// Parses the members that both JWEs share.
enum JWEText {
  static func sealedBox(
    _ bytes: RawSpan, nonce: Range<Int>, ciphertext: Range<Int>, tag: Range<Int>, of part: String
  ) throws(FormatFault) -> ([UInt8], AES256GCM.SealedBox) {
    let nonce = try decode(bytes, nonce, of: part)
    let box = AES256GCM.SealedBox(
      ciphertext: try decode(bytes, ciphertext, of: part), tag: try decode(bytes, tag, of: part))
    guard nonce.count == AES256GCM.nonceByteCount, box.tag.count == AES256GCM.tagByteCount else {
      throw FormatFault(part, "the length of iv or tag is wrong")
    }
    return (nonce, box)
  }

  private static func decode(
    _ bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> [UInt8] {
    // The alphabet has no escape characters, so decoding refuses escapes.
    try Base64URL.decode(bytes, try JSONText.escapedString(in: bytes, range, of: part), of: part)
  }
}
