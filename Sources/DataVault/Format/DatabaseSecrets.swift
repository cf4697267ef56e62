internal import VaultCrypto

/// The keys of the bound database, and the rollback anchor that it must hold.
struct DatabaseSecrets: ~Copyable, Sendable {
  static let keyByteCount = 32

  var current: SecretBytes
  var pending: SecretBytes?
  var anchor: DatabaseAnchor?

  /// Stores the next key.
  ///
  /// - Throws: `keyChangePending` if there is one, because the database can already be sealed under
  ///   it.
  mutating func beginKeyChange(
    to key: consuming SecretBytes, ofVault id: String
  ) throws(VaultError) {
    guard pending == nil else {
      throw VaultError(
        .keyChangePending, "vault '\(id)' holds the pending key of an unfinished key change",
        hint: "open the database once, which finishes it")
    }
    pending = consume key
  }

  /// Replaces the current key by the pending key, if there is one.
  mutating func promotePending() {
    if let pending = pending.take() { current = pending }
  }
}

extension DatabaseSecrets {
  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "databases"
    let members = try JSONText.members(
      ["current", "pending", "anchor"], in: bytes, range, of: part)
    self.init(
      current: try Self.key(parsing: bytes, members[0], of: part),
      pending: JSONText.isNull(in: bytes, members[1])
        ? nil : try Self.key(parsing: bytes, members[1], of: part),
      anchor: JSONText.isNull(in: bytes, members[2])
        ? nil : try DatabaseAnchor(parsing: bytes, members[2]))
  }

  private static func key(
    parsing bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> SecretBytes {
    let key = try Base64URL.decodeSecret(
      bytes, try JSONText.plainString(in: bytes, range, of: part), of: part)
    guard key.byteCount == keyByteCount else {
      throw FormatFault(part, "a key is not 32 bytes long")
    }
    return key
  }

  static func copy(of secrets: borrowing DatabaseSecrets?) -> DatabaseSecrets? {
    switch secrets {
    case .none: nil
    case .some(let secrets):
      DatabaseSecrets(
        current: secrets.current.copy(), pending: SecretBytes.copy(of: secrets.pending),
        anchor: secrets.anchor)
    }
  }

  static func write(_ secrets: borrowing DatabaseSecrets?, to writer: inout ByteWriter) {
    switch secrets {
    case .none: writer.append("null")
    case .some(let secrets):
      writer.append("{\"current\":")
      writer.appendBase64URL(secrets.current)
      writer.append(",\"pending\":")
      switch secrets.pending {
      case .none: writer.append("null")
      case .some(let key): writer.appendBase64URL(key)
      }
      writer.append(",\"anchor\":\(secrets.anchor?.text ?? "null")}")
    }
  }
}

extension SecretBytes {
  /// A copy of the secret; nil for nil.
  static func copy(of secret: borrowing SecretBytes?) -> SecretBytes? {
    switch secret {
    case .none: nil
    case .some(let secret): secret.copy()
    }
  }
}

/// A rollback anchor: a value that a database stores durably before its vault does.
///
/// A database without it is an older copy, or has lost its last commits.
package struct DatabaseAnchor: Sendable, Hashable {
  package static let idByteCount = 16

  /// A random value of 16 bytes.
  package let id: [UInt8]

  /// The number of the commit that wrote the anchor to the database.
  package let commitNumber: Int64

  package init(id: [UInt8], commitNumber: Int64) {
    precondition(id.count == Self.idByteCount, "an anchor's id has 16 bytes")
    self.id = id
    self.commitNumber = commitNumber
  }
}

extension DatabaseAnchor {
  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "anchor"
    let members = try JSONText.members(["id", "commit"], in: bytes, range, of: part)
    id = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[0], of: part), of: part)
    guard id.count == Self.idByteCount else {
      throw FormatFault(part, "the id is not 16 bytes long")
    }
    commitNumber = Int64(try JSONText.number(in: bytes, members[1], of: part))
  }

  var text: String {
    "{\"id\":\"\(base64URLText(id))\",\"commit\":\(commitNumber)}"
  }
}
