internal import VaultCrypto

/// The plaintext of `contents`: all secrets and sealed settings of a vault.
struct VaultContents: ~Copyable, Sendable {
  /// The maximum size of the JSON text in bytes: 32 MiB.
  static let maximumTextByteCount = 32 << 20

  var generation: Int
  var passwordSetAt: Int
  var policy: VaultPolicy
  var databases: DatabaseSecrets?
  var dataKeys: DataKeys
  var items: ItemTable
}

extension VaultContents {
  /// The contents of a new vault; the first write makes them generation 1.
  init(passwordSetAt: Int, policy: VaultPolicy, random: RandomSource) {
    self.init(
      generation: 0, passwordSetAt: passwordSetAt, policy: policy,
      dataKeys: DataKeys(random: random), items: ItemTableBuilder(byteCount: 0).table())
  }

  init(parsing bytes: RawSpan) throws(FormatFault) {
    let part = "contents"
    guard bytes.byteCount <= Self.maximumTextByteCount else {
      throw FormatFault(part, "larger than the maximum of \(Self.maximumTextByteCount) bytes")
    }
    let members = try JSONText.members(
      ["generation", "passwordSetAt", "policy", "databases", "dataKeys", "items"],
      in: bytes, 0..<bytes.byteCount, of: part)
    self.init(
      generation: try JSONText.number(in: bytes, members[0], of: part),
      passwordSetAt: try JSONText.number(in: bytes, members[1], of: part),
      policy: try VaultPolicy(parsing: bytes, members[2]),
      databases: JSONText.isNull(in: bytes, members[3])
        ? nil : try DatabaseSecrets(parsing: bytes, members[3]),
      dataKeys: try DataKeys(parsing: bytes, members[4]),
      items: try ItemTable(parsing: bytes, members[5]))
  }

  /// Counts a write; the counter stays at the greatest number that the format has.
  mutating func countWrite() {
    generation = min(generation + 1, JSONText.maximumNumber)
  }

  /// A copy to change; a failed write leaves the original unchanged.
  borrowing func copy() -> VaultContents {
    VaultContents(
      generation: generation, passwordSetAt: passwordSetAt, policy: policy,
      databases: DatabaseSecrets.copy(of: databases), dataKeys: dataKeys.copy(),
      items: items.copy())
  }

  /// The JSON text.
  borrowing func text() -> SecretBytes {
    ByteWriter.secret { write(to: &$0) }
  }

  private borrowing func write(to writer: inout ByteWriter) {
    writer.append("{\"generation\":\(generation),\"passwordSetAt\":\(passwordSetAt),\"policy\":")
    writer.append(policy.text)
    writer.append(",\"databases\":")
    DatabaseSecrets.write(databases, to: &writer)
    writer.append(",\"dataKeys\":")
    dataKeys.write(to: &writer)
    writer.append(",\"items\":")
    items.write(to: &writer)
    writer.append("}")
  }
}

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
      throw FormatFault(part, "unknown algorithm")
    }
    additionalText = bytes.array(try JSONText.plainString(in: bytes, members[1], of: part))
    (nonce, box) = try JWEText.sealedBox(
      bytes, nonce: members[2], ciphertext: members[3], tag: members[4], of: part)
  }

  /// The clear members, which are unauthenticated until ``open(with:)`` succeeds.
  func clearMembers() throws(FormatFault) -> ClearMembers {
    let text = try Base64URL.decode(
      unsafe additionalText.span.bytes, 0..<additionalText.count, of: "clear members")
    return try ClearMembers(parsing: unsafe text.span.bytes)
  }

  /// An upper bound for the size of the member in bytes.
  var approximateByteCount: Int {
    Base64URL.encodedCount(box.ciphertext.count) + additionalText.count + 256
  }

  /// Opens the plaintext.
  ///
  /// - Throws: a fault when the key is wrong or any byte was changed.
  func open(with vaultKey: borrowing SecretBytes) throws(FormatFault) -> SecretBytes {
    do throws(CryptoError) {
      return try AES256GCM.open(
        box, key: vaultKey, nonce: nonce,
        authenticating: unsafe Self.additionalData(additionalText).span.bytes)
    } catch {
      throw FormatFault("contents", "do not open with the vault key")
    }
  }

  /// Appends the member's JSON text to a file.
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
