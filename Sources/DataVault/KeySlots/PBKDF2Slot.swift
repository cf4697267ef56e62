internal import VaultCrypto

/// A password slot: `PBES2-HS512+A256KW` of RFC 7518, section 4.8.
struct PBKDF2Slot: KeySlotKind {
  static let secretKind = VaultStatus.Slot.Kind.password
  static let algorithm = "PBES2-HS512+A256KW"
  private static let saltByteCount = 16

  let identifier = secretKind.description
  private let salt: [UInt8]
  private let count: Int

  var iterationCount: Int? { count }

  var header: String {
    """
    \(Self.algorithmMember)"kid":"\(identifier)","p2s":"\(base64URLText(salt))","p2c":\(count)}
    """
  }

  /// A slot with a new salt and today's iterations.
  init(_ parameters: VaultParameters) {
    salt = parameters.random.bytes(count: Self.saltByteCount)
    count = parameters.iterationCount
  }

  init?(parsing bytes: RawSpan, _ header: Range<Int>, of part: String) throws(FormatFault) {
    let members = try JSONText.members(["alg", "kid", "p2s", "p2c"], in: bytes, header, of: part)
    guard bytes.equals("\"\(identifier)\"".utf8, in: members[1]) else { return nil }
    salt = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[2], of: part), of: part)
    guard salt.count == Self.saltByteCount else {
      throw FormatFault(part, "p2s is not 16 bytes long")
    }
    count = try JSONText.number(in: bytes, members[3], of: part)
  }

  func renewed(_ parameters: VaultParameters) -> any KeySlotKind { PBKDF2Slot(parameters) }

  func isOutdated(_ parameters: VaultParameters) -> Bool { count < parameters.iterationCount }

  func requireAcceptableCost(_ parameters: VaultParameters) throws(FormatFault) {
    let range = parameters.minimumIterationCount...VaultParameters.maximumIterationCount
    guard range.contains(count) else {
      throw FormatFault("key slot", "p2c is not from \(range.lowerBound) to \(range.upperBound)")
    }
  }

  func wrappingKey(of secret: borrowing VaultSecret) throws(CryptoError) -> SecretBytes? {
    switch secret {
    case .password(let credentials): try wrappingKey(of: credentials)
    default: nil
    }
  }

  /// PBKDF2 whose salt is UTF8(alg), 00, p2s, then the caller's salt.
  func wrappingKey(of credentials: borrowing Credentials) throws(CryptoError) -> SecretBytes {
    let whole = ByteWriter.secret { writer in
      for byte in Array(Self.algorithm.utf8) + [0] + salt { writer.append(byte) }
      writer.append(credentials.salt)
    }
    return try PBKDF2.sha512(
      password: credentials.password, salt: whole, iterationCount: count, byteCount: 32)
  }

  static func wrongSecret(of id: VaultID) -> VaultError { .wrongPassword(id) }
}
