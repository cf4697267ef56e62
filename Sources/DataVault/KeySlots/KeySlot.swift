internal import VaultCrypto

/// One recipient of `key`: a slot that opens the vault by itself.
struct KeySlot: Sendable, Equatable {
  /// The method by which a slot gets its wrapping key.
  enum Method: Sendable, Equatable {
    case password(salt: [UInt8], iterationCount: Int)
    case recoveryCode(name: String)
    case keyFile(name: String)
  }

  static let saltByteCount = 16
  static let wrappedKeyByteCount = 40
  static let maximumNameByteCount = 32
  static let passwordName = "password"
  private static let passwordAlgorithm = "PBES2-HS512+A256KW"
  private static let keyAlgorithm = "A256KW"

  let method: Method
  let wrappedKey: [UInt8]

  var isPassword: Bool { kind == .password }

  var kind: VaultStatus.Slot.Kind {
    switch method {
    case .password: .password
    case .recoveryCode: .recoveryCode
    case .keyFile: .keyFile
    }
  }

  /// The slot's name for people; a password has none.
  var shortName: String? {
    switch method {
    case .password: nil
    case .recoveryCode(let name), .keyFile(let name): name
    }
  }

  /// The slot's `kid`, unique in a vault.
  var name: String {
    switch method {
    case .password: Self.passwordName
    case .recoveryCode(let name): "recovery:\(name)"
    case .keyFile(let name): "keyfile:\(name)"
    }
  }

  var text: String {
    let header =
      switch method {
      case .password(let salt, let iterationCount):
        """
        {"alg":"\(Self.passwordAlgorithm)","kid":"\(name)",\
        "p2s":"\(base64URLText(salt))","p2c":\(iterationCount)}
        """
      case .recoveryCode, .keyFile:
        "{\"alg\":\"\(Self.keyAlgorithm)\",\"kid\":\"\(name)\"}"
      }
    return "{\"header\":\(header),\"encrypted_key\":\"\(base64URLText(wrappedKey))\"}"
  }

  init(method: Method, wrappedKey: [UInt8]) {
    self.method = method
    self.wrappedKey = wrappedKey
  }

  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "key slot"
    let members = try JSONText.members(["header", "encrypted_key"], in: bytes, range, of: part)
    method = try Self.method(parsing: bytes, members[0], of: part)
    wrappedKey = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[1], of: part), of: part)
    guard wrappedKey.count == Self.wrappedKeyByteCount else {
      throw FormatFault(part, "the wrapped key is not 40 bytes long")
    }
  }

  /// The content key; nil if the wrapping key belongs to another slot.
  func contentKey(with wrappingKey: borrowing SecretBytes) throws(CryptoError) -> SecretBytes? {
    do throws(CryptoError) {
      return try AES256KeyWrap.unwrap(wrappedKey, with: wrappingKey)
    } catch {
      guard error.code == .authenticationFailed else { throw error }
      return nil
    }
  }

  private static func method(
    parsing bytes: RawSpan, _ header: Range<Int>, of part: String
  ) throws(FormatFault) -> Method {
    // The algorithm comes first and determines the other members.
    let prefix = "{\"alg\":\"\(passwordAlgorithm)\","
    guard bytes.hasBytes(prefix.utf8, at: header.lowerBound) else {
      return try keyMethod(parsing: bytes, header, of: part)
    }
    let members = try JSONText.members(["alg", "kid", "p2s", "p2c"], in: bytes, header, of: part)
    guard bytes.equals("\"\(passwordName)\"".utf8, in: members[1]) else {
      throw FormatFault(part, "the algorithm does not match the kid")
    }
    let salt = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[2], of: part), of: part)
    guard salt.count == saltByteCount else { throw FormatFault(part, "p2s is not 16 bytes long") }
    return .password(
      salt: salt, iterationCount: try JSONText.number(in: bytes, members[3], of: part))
  }

  private static func keyMethod(
    parsing bytes: RawSpan, _ header: Range<Int>, of part: String
  ) throws(FormatFault) -> Method {
    guard bytes.hasBytes("{\"alg\":\"\(keyAlgorithm)\",".utf8, at: header.lowerBound) else {
      throw FormatFault(part, "unknown algorithm")
    }
    let members = try JSONText.members(["alg", "kid"], in: bytes, header, of: part)
    let kid = bytes.array(try JSONText.plainString(in: bytes, members[1], of: part))
    let pieces = kid.split(
      separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard pieces.count == 2, (1...maximumNameByteCount).contains(pieces[1].count),
      isSlug(pieces[1])
    else { throw FormatFault(part, "unknown kind of kid") }
    let name = String(decoding: pieces[1], as: UTF8.self)
    if pieces[0].elementsEqual("recovery".utf8) { return .recoveryCode(name: name) }
    if pieces[0].elementsEqual("keyfile".utf8) { return .keyFile(name: name) }
    throw FormatFault(part, "unknown kind of kid")
  }
}

extension KeySlot {
  /// A new password slot that wraps the content key.
  static func password(
    _ credentials: borrowing Credentials, wrapping contentKey: borrowing SecretBytes,
    parameters: VaultParameters
  ) throws(CryptoError) -> KeySlot {
    let salt = parameters.random.bytes(count: saltByteCount)
    let key = try wrappingKey(
      credentials, salt: salt, iterationCount: parameters.iterationCount)
    return KeySlot(
      method: .password(salt: salt, iterationCount: parameters.iterationCount),
      wrappedKey: try AES256KeyWrap.wrap(contentKey, with: key))
  }

  /// The wrapping key of RFC 7518, section 4.8: the salt is UTF8(alg), 00, p2s, then the caller's
  /// salt.
  static func wrappingKey(
    _ credentials: borrowing Credentials, salt: [UInt8], iterationCount: Int
  ) throws(CryptoError) -> SecretBytes {
    let prefix = Array("PBES2-HS512+A256KW".utf8) + [0] + salt
    let whole = ByteWriter.secret { writer in
      for byte in prefix { writer.append(byte) }
      credentials.salt.withBytes { writer.append($0, 0..<$0.byteCount) }
    }
    return try PBKDF2.sha512(
      password: credentials.password, salt: whole, iterationCount: iterationCount, byteCount: 32)
  }
}

extension KeySlot {
  /// A new slot that wraps the content key and opens with a recovery code.
  static func recoveryCode(
    _ code: borrowing RecoveryCode, named name: String, wrapping contentKey: borrowing SecretBytes
  ) throws(CryptoError) -> KeySlot {
    let key = try code.wrappingKey()
    return KeySlot(
      method: .recoveryCode(name: name),
      wrappedKey: try AES256KeyWrap.wrap(contentKey, with: key))
  }
}

extension KeySlot {
  /// The size of a key file in bytes.
  static let keyFileByteCount = 32

  /// A new slot that wraps the content key and opens with the 32 bytes of a key file.
  static func keyFile(
    _ key: borrowing SecretBytes, named name: String, wrapping contentKey: borrowing SecretBytes
  ) throws(CryptoError) -> KeySlot {
    KeySlot(
      method: .keyFile(name: name), wrappedKey: try AES256KeyWrap.wrap(contentKey, with: key))
  }

  /// - Throws: `keyFileLength` unless the key has exactly 32 bytes.
  static func requireKeyFile(_ key: borrowing SecretBytes) throws(VaultError) {
    guard key.byteCount == keyFileByteCount else {
      throw VaultError(
        .keyFileLength, "the key file has \(key.byteCount) bytes, not \(keyFileByteCount)",
        hint: "create one with: head -c 32 /dev/urandom > FILE")
    }
  }
}
