internal import StrictJSON
internal import VaultCrypto

/// A JWE in compact serialization (RFC 7516) for one X25519 key: ECDH-ES+A256KW, A256GCM.
///
/// Other algorithms and other members of the header are refused.
struct CompactJWE {
  private static let algorithm = "ECDH-ES+A256KW"
  private static let type = "datavault-invitation"

  /// The text of the header, which the tag covers.
  private let header: [UInt8]
  private let ephemeralKey: [UInt8]
  /// JOSE's `apv`, decoded.
  let recipient: [UInt8]
  private let encryptedKey: [UInt8]
  private let nonce: [UInt8]
  private let box: AES256GCM.SealedBox

  init(
    sealing plaintext: borrowing SecretBytes, to publicKey: [UInt8], recipient: [UInt8],
    random: RandomSource
  ) throws(CryptoError) {
    let ephemeral = X25519.privateKey(from: random)
    ephemeralKey = try X25519.publicKey(of: ephemeral)
    self.recipient = recipient
    let object: JSONValue = [
      "alg": .string(Self.algorithm), "enc": "A256GCM", "typ": .string(Self.type),
      "epk": JSONWebKey.value(ephemeralKey),
      "apv": .string(String(decoding: Base64URL.encode(recipient), as: UTF8.self)),
    ]
    let header = Base64URL.encode(Array(object.text.utf8))
    let contentKey = SecretBytes.random(byteCount: 32, from: random)
    let nonce = random.bytes(count: AES256GCM.nonceByteCount)
    let wrappingKey = try Self.wrappingKey(ephemeral, publicKey, recipient: recipient)
    encryptedKey = try AES256KeyWrap.wrap(contentKey, with: wrappingKey)
    box = try Self.seal(plaintext, under: contentKey, nonce: nonce, header: header)
    self.header = header
    self.nonce = nonce
  }

  /// Reads a serialization; nil if it is not one of these.
  init?(parsing bytes: [UInt8]) {
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 5, let object = Base64URL.decode(parts[0]),
      let members = try? JSONReader.object(object, maximumDepth: 2),
      members.haveExactly(["alg", "enc", "typ", "epk", "apv"]),
      members["alg"]?.string == Self.algorithm, members["enc"]?.string == "A256GCM",
      members["typ"]?.string == Self.type,
      let ephemeralKey = members["epk"].flatMap(JSONWebKey.x25519),
      let recipient = members["apv"]?.string.flatMap({ Base64URL.decode($0.utf8) }),
      let encryptedKey = Base64URL.decode(parts[1]), let nonce = Base64URL.decode(parts[2]),
      let ciphertext = Base64URL.decode(parts[3]), let tag = Base64URL.decode(parts[4])
    else { return nil }
    header = Array(parts[0])
    self.ephemeralKey = ephemeralKey
    self.recipient = recipient
    self.encryptedKey = encryptedKey
    self.nonce = nonce
    box = AES256GCM.SealedBox(ciphertext: ciphertext, tag: tag)
  }

  var bytes: [UInt8] {
    let others = [encryptedKey, nonce, box.ciphertext, box.tag].map { Base64URL.encode($0) }
    return Array(([header] + others).joined(separator: [UInt8(ascii: ".")]))
  }

  /// Opens it with the private key of its recipient.
  func open(_ privateKey: borrowing SecretBytes) throws(CryptoError) -> SecretBytes {
    let wrappingKey = try Self.wrappingKey(privateKey, ephemeralKey, recipient: recipient)
    let contentKey = try AES256KeyWrap.unwrap(encryptedKey, with: wrappingKey)
    return try unsafe AES256GCM.open(
      box, key: contentKey, nonce: nonce, authenticating: header.span.bytes)
  }

  private static func seal(
    _ plaintext: borrowing SecretBytes, under contentKey: borrowing SecretBytes, nonce: [UInt8],
    header: [UInt8]
  ) throws(CryptoError) -> AES256GCM.SealedBox {
    try plaintext.withBytes { (plaintext) throws(CryptoError) in
      try unsafe AES256GCM.seal(
        plaintext, key: contentKey, nonce: nonce, authenticating: header.span.bytes)
    }
  }

  private static func wrappingKey(
    _ privateKey: borrowing SecretBytes, _ publicKey: [UInt8], recipient: [UInt8]
  ) throws(CryptoError) -> SecretBytes {
    let sharedSecret = try X25519.sharedSecret(privateKey, with: publicKey)
    return try ConcatKDF.sha256(
      sharedSecret: sharedSecret, algorithm: algorithm, sender: [], recipient: recipient,
      byteCount: 32)
  }
}
