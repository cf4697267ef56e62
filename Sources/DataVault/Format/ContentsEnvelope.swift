internal import VaultCrypto

/// The member `contents`: the plaintext sealed under the vault key, bound to the clear members.
struct ContentsEnvelope: Sendable {
  /// base64url of `{"alg":"dir","enc":"A256GCM"}`.
  private static let protected = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0"

  /// The clear members as they are stored: base64url.
  private let additionalText: [UInt8]
  private let nonce: [UInt8]
  private let box: AES256GCM.SealedBox

  init(
    sealing plaintext: borrowing SecretBytes, under vaultKey: borrowing SecretBytes,
    clear: ClearMembers, random: RandomSource
  ) throws(CryptoError) {
    let additionalText = Base64URL.encode(Array(clear.text.utf8))
    let nonce = random.bytes(count: AES256GCM.nonceByteCount)
    box = try plaintext.withBytes { (plaintext) throws(CryptoError) in
      try AES256GCM.seal(
        plaintext, key: vaultKey, nonce: nonce,
        authenticating: unsafe Self.additionalData(additionalText).span.bytes)
    }
    self.additionalText = additionalText
    self.nonce = nonce
  }

  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "contents"
    let members = try JSONText.members(
      ["protected", "aad", "iv", "ciphertext", "tag"], in: bytes, range, of: part)
    guard bytes.equals("\"\(Self.protected)\"".utf8, in: members[0]) else {
      throw FormatFault(part, "an algorithm that this format does not have")
    }
    additionalText = bytes.array(try JSONText.plainString(in: bytes, members[1], of: part))
    (nonce, box) = try JWEText.sealedBox(
      bytes, nonce: members[2], ciphertext: members[3], tag: members[4], of: part)
  }

  /// The clear members, not authentic before ``open(with:)`` has succeeded.
  func clearMembers() throws(FormatFault) -> ClearMembers {
    let text = try Base64URL.decode(
      unsafe additionalText.span.bytes, 0..<additionalText.count, of: "clear members")
    return try ClearMembers(parsing: unsafe text.span.bytes)
  }

  /// Enough room for the member.
  var approximateByteCount: Int {
    Base64URL.encodedCount(box.ciphertext.count) + additionalText.count + 256
  }

  /// The plaintext.
  ///
  /// - Throws: a fault when the key does not fit, or any byte was changed.
  func open(with vaultKey: borrowing SecretBytes) throws(FormatFault) -> SecretBytes {
    do throws(CryptoError) {
      return try AES256GCM.open(
        box, key: vaultKey, nonce: nonce,
        authenticating: unsafe Self.additionalData(additionalText).span.bytes)
    } catch {
      throw FormatFault("contents", "do not open under the vault key")
    }
  }

  /// Appends the bytes of the member.
  func write(to file: inout [UInt8]) {
    file += "{\"protected\":\"\(Self.protected)\",\"aad\":\"".utf8
    file += additionalText
    file += "\",\"iv\":\"\(base64URLText(nonce))\",\"ciphertext\":\"".utf8
    file += Base64URL.encode(box.ciphertext)
    file += "\",\"tag\":\"\(base64URLText(box.tag))\"}".utf8
  }

  /// RFC 7516, section 5.1, step 14: protected, a period, aad.
  private static func additionalData(_ additionalText: [UInt8]) -> [UInt8] {
    Array(protected.utf8) + [UInt8(ascii: ".")] + additionalText
  }
}
