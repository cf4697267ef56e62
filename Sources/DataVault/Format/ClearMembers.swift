/// The members that can be read without a password: the additional data of `contents`.
struct ClearMembers: Sendable, Equatable {
  static let version = 1
  static let maximumRetryLimit = 1000

  var vaultID: String
  var isSecured: Bool
  var retryLimit = 0
  var binding: DatabaseBinding?
  /// SHA-256 of the bytes of `key`.
  var keyDigest: [UInt8]

  init(vaultID: String, isSecured: Bool, keyDigest: [UInt8]) {
    self.vaultID = vaultID
    self.isSecured = isSecured
    self.keyDigest = keyDigest
  }

  init(parsing bytes: RawSpan) throws(FormatFault) {
    let part = "clear members"
    let members = try JSONText.members(
      ["version", "vault", "secured", "retryLimit", "binding", "keyDigest"],
      in: bytes, 0..<bytes.byteCount, of: part)
    guard try JSONText.number(in: bytes, members[0], of: part) == Self.version else {
      throw FormatFault(part, "not of version \(Self.version)")
    }
    let id = try JSONText.plainString(in: bytes, members[1], of: part)
    vaultID = String(decoding: bytes.array(id), as: UTF8.self)
    isSecured = try JSONText.boolean(in: bytes, members[2], of: part)
    retryLimit = try JSONText.number(in: bytes, members[3], of: part)
    guard retryLimit <= Self.maximumRetryLimit else {
      throw FormatFault(part, "the retry limit is too large")
    }
    binding =
      JSONText.isNull(in: bytes, members[4])
      ? nil : try DatabaseBinding(parsing: bytes, members[4])
    keyDigest = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[5], of: part), of: part)
  }

  /// The JSON text, as it is encoded into `aad`.
  var text: String {
    """
    {"version":\(Self.version),"vault":"\(vaultID)","secured":\(isSecured),\
    "retryLimit":\(retryLimit),"binding":\(binding?.text ?? "null"),\
    "keyDigest":"\(base64URLText(keyDigest))"}
    """
  }
}

extension DatabaseBinding {
  static let databaseIDByteCount = 8

  init(parsing bytes: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    let part = "binding"
    let members = try JSONText.members(["database", "state"], in: bytes, range, of: part)
    databaseID = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, members[0], of: part), of: part)
    guard databaseID.count == Self.databaseIDByteCount else {
      throw FormatFault(part, "the database's id has not 8 bytes")
    }
    let name = bytes.array(try JSONText.plainString(in: bytes, members[1], of: part))
    guard let state = State(rawValue: String(decoding: name, as: UTF8.self)) else {
      throw FormatFault(part, "an unknown state")
    }
    self.state = state
  }

  fileprivate var text: String {
    "{\"database\":\"\(base64URLText(databaseID))\",\"state\":\"\(state.rawValue)\"}"
  }
}

/// Base64url of bytes that are not secret, as a string.
func base64URLText(_ bytes: [UInt8]) -> String {
  String(decoding: Base64URL.encode(bytes), as: UTF8.self)
}
