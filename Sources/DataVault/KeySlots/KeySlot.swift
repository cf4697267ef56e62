internal import VaultCrypto

/// One recipient of `key`: a slot that opens the vault by itself.
struct KeySlot: Sendable, Equatable {
  /// Every kind of slot; a file with another kind is refused.
  private static let kinds: [any KeySlotKind.Type] = [
    PBKDF2Slot.self, RecoveryCodeSlot.self, KeyFileSlot.self,
  ]
  private static let wrappedKeyByteCount = 40

  let kind: any KeySlotKind
  private let wrappedKey: [UInt8]

  /// The kind of secret that opens the slot.
  var secretKind: VaultStatus.Slot.Kind { type(of: kind).secretKind }

  /// The `kid`, unique in a vault.
  var identifier: String { kind.identifier }

  /// The slot's name for people, the part of the `kid` after the colon; a password has none.
  var name: String? {
    identifier.firstIndex(of: ":").map { String(identifier[$0...].dropFirst()) }
  }

  /// The slot as it is stored.
  var text: String {
    "{\"header\":\(kind.header),\"encrypted_key\":\"\(base64URLText(wrappedKey))\"}"
  }

  /// A new slot that wraps the content key.
  init(
    _ kind: any KeySlotKind, wrapping contentKey: borrowing SecretBytes,
    with wrappingKey: borrowing SecretBytes
  ) throws(CryptoError) {
    self.kind = kind
    wrappedKey = try AES256KeyWrap.wrap(contentKey, with: wrappingKey)
  }

  /// A new password slot that wraps the content key.
  static func password(
    _ credentials: borrowing Credentials, wrapping contentKey: borrowing SecretBytes,
    parameters: VaultParameters
  ) throws(CryptoError) -> KeySlot {
    let kind = PBKDF2Slot(parameters)
    return try KeySlot(kind, wrapping: contentKey, with: kind.wrappingKey(of: credentials))
  }

  /// This slot for another content key, as today's version writes it; nil when the secret is not of
  /// the slot's kind.
  func rewrapping(
    _ contentKey: borrowing SecretBytes, with secret: borrowing VaultSecret,
    parameters: VaultParameters
  ) throws(CryptoError) -> KeySlot? {
    let kind = kind.renewed(parameters)
    guard let wrappingKey = try kind.wrappingKey(of: secret) else { return nil }
    return try KeySlot(kind, wrapping: contentKey, with: wrappingKey)
  }

  /// The content key; nil when the secret does not open this slot.
  func contentKey(with secret: borrowing VaultSecret) throws(CryptoError) -> SecretBytes? {
    guard let wrappingKey = try kind.wrappingKey(of: secret) else { return nil }
    do throws(CryptoError) {
      return try AES256KeyWrap.unwrap(wrappedKey, with: wrappingKey)
    } catch {
      guard error.code == .authenticationFailed else { throw error }
      return nil
    }
  }

  /// Whether a key is the one that wraps the content key.
  func opens(with wrappingKey: borrowing SecretBytes) -> Bool {
    do {
      _ = try AES256KeyWrap.unwrap(wrappedKey, with: wrappingKey)
      return true
    } catch {
      return false
    }
  }

  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "key slot"
    let members = try JSONText.members(["header", "encrypted_key"], in: bytes, range, of: part)
    kind = try Self.kind(parsing: bytes, members[0], of: part)
    wrappedKey = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[1], of: part), of: part)
    guard wrappedKey.count == Self.wrappedKeyByteCount else {
      throw FormatFault(part, "the wrapped key is not 40 bytes long")
    }
  }

  private static func kind(
    parsing bytes: RawSpan, _ header: Range<Int>, of part: String
  ) throws(FormatFault) -> any KeySlotKind {
    var reason = "unknown algorithm"
    // The algorithm comes first and determines the other members.
    for kind in kinds where bytes.hasBytes(kind.algorithmMember.utf8, at: header.lowerBound) {
      reason = "unknown kind of kid"
      if let parsed = try kind.init(parsing: bytes, header, of: part) { return parsed }
    }
    throw FormatFault(part, reason)
  }

  static func == (one: KeySlot, other: KeySlot) -> Bool { one.text == other.text }
}

/// A kind of slot: how its header is parsed and written, and how a secret becomes the key that
/// wraps the content key.
///
/// A new kind is a file with a type that conforms, and a place in ``KeySlot/kinds``.
protocol KeySlotKind: Sendable {
  /// The kind of secret that opens the slot.
  static var secretKind: VaultStatus.Slot.Kind { get }
  /// The header's `alg`.
  static var algorithm: String { get }
  /// The header's `kid`, unique in a vault.
  var identifier: String { get }
  /// The header, as it is stored.
  var header: String { get }
  /// The PBKDF2 iterations.
  var iterationCount: Int? { get }
  /// The kind as today's version writes it, with a new salt and today's cost.
  func renewed(_ parameters: VaultParameters) -> any KeySlotKind
  /// Whether a slot that opens is to be renewed.
  func isOutdated(_ parameters: VaultParameters) -> Bool

  /// Parses a header with this algorithm; nil for the `kid` of another kind.
  init?(parsing bytes: RawSpan, _ header: Range<Int>, of part: String) throws(FormatFault)
  /// - Throws: a fault for a cost that no writer uses.
  func requireAcceptableCost(_ parameters: VaultParameters) throws(FormatFault)
  /// The key that wraps the content key; nil for a secret of another kind.
  func wrappingKey(of secret: borrowing VaultSecret) throws(CryptoError) -> SecretBytes?
  /// The error for a secret of this kind that opens no slot.
  static func wrongSecret(of id: VaultID) -> VaultError
}

extension KeySlotKind {
  static var algorithmMember: String { "{\"alg\":\"\(algorithm)\"," }
  var iterationCount: Int? { nil }
  func renewed(_ parameters: VaultParameters) -> any KeySlotKind { self }
  func isOutdated(_ parameters: VaultParameters) -> Bool { false }
  func requireAcceptableCost(_ parameters: VaultParameters) throws(FormatFault) {}
}

/// A kind whose slots have names, and whose secret has enough entropy to need no derivation cost.
protocol NamedSlotKind: KeySlotKind {
  /// The part of the `kid` before the name.
  static var prefix: String { get }
  init(identifier: String)
}

extension NamedSlotKind {
  static var algorithm: String { "A256KW" }
  var header: String { "\(Self.algorithmMember)\"kid\":\"\(identifier)\"}" }

  init(named name: String) { self.init(identifier: Self.prefix + name) }

  init?(parsing bytes: RawSpan, _ header: Range<Int>, of part: String) throws(FormatFault) {
    let members = try JSONText.members(["alg", "kid"], in: bytes, header, of: part)
    let kid = bytes.array(try JSONText.plainString(in: bytes, members[1], of: part))
    guard kid.starts(with: Self.prefix.utf8), isSlotName(kid.dropFirst(Self.prefix.utf8.count))
    else { return nil }
    self.init(identifier: String(decoding: kid, as: UTF8.self))
  }
}

/// Whether bytes match `[a-z0-9][a-z0-9_-]{0,31}`.
func isSlotName(_ bytes: some Collection<UInt8>) -> Bool { bytes.count <= 32 && isSlug(bytes) }
