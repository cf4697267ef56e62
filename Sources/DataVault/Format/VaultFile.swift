internal import VaultCrypto

/// A vault file, parsed and checked as far as possible without a password.
struct VaultFile: Sendable {
  /// The maximum size of a vault file in bytes: 44 MiB.
  static let maximumByteCount = 44 << 20

  let key: KeyEnvelope
  let clear: ClearMembers
  let contents: ContentsEnvelope
  /// Identifies this state of the file.
  let tail: FileTail

  /// Checks and parses a file, with the outcomes that `docs/reference/vault-format.md` specifies.
  init(parsing file: [UInt8]) throws(FormatFault) {
    guard file.count <= Self.maximumByteCount else {
      throw FormatFault("file", "larger than the maximum of \(Self.maximumByteCount) bytes")
    }
    let tail = try FileTail(verifying: file)
    let bytes = unsafe file.span.bytes
    let whole = 0..<file.count - 1  // without the line feed, which belongs to the tail
    do throws(FormatFault) {
      try self.init(parsing: bytes, whole, tail: tail)
    } catch {
      // A file that breaks this version's rules can follow the rules of another version.
      if let version = try? Self.version(of: bytes, whole), version != ClearMembers.version {
        throw FormatFault(
          "version", "\(version); this software reads \(ClearMembers.version)",
          otherVersion: version)
      }
      throw error
    }
  }

  /// Parses the bytes that a store holds under an id.
  init(_ bytes: [UInt8], of id: VaultID, in store: any VaultStore) throws(VaultError) {
    do throws(FormatFault) {
      try self.init(parsing: bytes)
      guard clear.vaultID == id.rawValue else {
        throw FormatFault("vault", "the file belongs to a vault with another name")
      }
    } catch {
      throw .invalidFile(error, id, in: store)
    }
  }

  private init(
    parsing bytes: RawSpan, _ whole: Range<Int>, tail: FileTail
  ) throws(FormatFault) {
    self.tail = tail
    let members = try JSONText.members(["key", "contents", "digest"], in: bytes, whole, of: "file")
    key = try KeyEnvelope(parsing: bytes, members[0])
    contents = try ContentsEnvelope(parsing: bytes, members[1])
    clear = try contents.clearMembers()
    guard try FileTail.digest(bytes.extracting(members[0])) == clear.keyDigest else {
      throw FormatFault("key", "does not belong to these contents")
    }
  }

  /// The bytes of a complete file.
  static func bytes(
    keyText: String, contents: ContentsEnvelope
  ) throws(CryptoError) -> [UInt8] {
    var file: [UInt8] = []
    file.reserveCapacity(contents.approximateByteCount + keyText.utf8.count + 512)
    file += "{\"key\":\(keyText),\"contents\":".utf8
    contents.write(to: &file)
    file.append(UInt8(ascii: ","))
    file += try FileTail(following: file).bytes
    return file
  }

  /// The version, found by the parts that every version keeps: `contents.aad` and its first member.
  private static func version(
    of bytes: RawSpan, _ whole: Range<Int>
  ) throws(FormatFault) -> Int {
    let part = "version"
    guard let contents = try member("contents", in: bytes, whole, of: part),
      let additional = try member("aad", in: bytes, contents, of: part)
    else { throw FormatFault(part, "missing") }
    let clear = try Base64URL.decode(
      bytes, try JSONText.plainString(in: bytes, additional, of: part), of: part)
    let text = unsafe clear.span.bytes
    var version: Int?
    var isFirst = true
    try JSONText.forEachMember(in: text, 0..<clear.count, of: part) {
      (name, value) throws(FormatFault) in
      if isFirst && text.equals("version".utf8, in: name) {
        version = try JSONText.number(in: text, value, of: part)
      }
      isFirst = false
    }
    guard let version else { throw FormatFault(part, "missing") }
    return version
  }

  private static func member(
    _ wanted: String, in bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Range<Int>? {
    var found: Range<Int>?
    try JSONText.forEachMember(in: bytes, range, of: part) { (name, value) throws(FormatFault) in
      guard bytes.equals(wanted.utf8, in: name) else { return }
      guard found == nil else { throw FormatFault(part, "a member is repeated") }
      found = value
    }
    return found
  }
}

/// The members that can be read without a password: the additional data of `contents`.
struct ClearMembers: Sendable, Equatable {
  static let version = 1
  static let maximumRetryLimit = 1000

  var vaultID: String
  var isSecured: Bool
  var retryLimit: Int
  var binding: DatabaseBinding?
  /// SHA-256 of the bytes of `key`.
  var keyDigest: [UInt8]
}

extension ClearMembers {
  init(parsing bytes: RawSpan) throws(FormatFault) {
    let part = "clear members"
    let members = try JSONText.members(
      ["version", "vault", "secured", "retryLimit", "binding", "keyDigest"],
      in: bytes, 0..<bytes.byteCount, of: part)
    guard try JSONText.number(in: bytes, members[0], of: part) == Self.version else {
      throw FormatFault(part, "the version is not \(Self.version)")
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

  /// The JSON text that is encoded into `aad`.
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
      throw FormatFault(part, "the database's id is not 8 bytes long")
    }
    let name = bytes.array(try JSONText.plainString(in: bytes, members[1], of: part))
    guard let state = State(rawValue: String(decoding: name, as: UTF8.self)) else {
      throw FormatFault(part, "unknown state")
    }
    self.state = state
  }

  fileprivate var text: String {
    "{\"database\":\"\(base64URLText(databaseID))\",\"state\":\"\(state.rawValue)\"}"
  }
}

/// The base64url text of bytes that are not secret.
func base64URLText(_ bytes: [UInt8]) -> String {
  String(decoding: Base64URL.encode(bytes), as: UTF8.self)
}

/// The last 56 bytes of a file: the member `digest`, the closing brace and a line feed.
///
/// It distinguishes a damaged file from a wrong password, and one state of a vault from another.
struct FileTail: Sendable, Equatable {
  static let byteCount = 56
  private static let opening = Array("\"digest\":\"".utf8)
  private static let closing = Array("\"}\n".utf8)

  let bytes: [UInt8]

  /// Computes the tail for the bytes that precede it.
  init(following head: [UInt8]) throws(CryptoError) {
    self.init(digest: try SHA256.digest(unsafe head.span.bytes))
  }

  /// Takes the last bytes of a file, unchecked.
  init(of file: [UInt8]) {
    bytes = Array(file.suffix(Self.byteCount))
  }

  private init(digest: [UInt8]) {
    bytes = Self.opening + Base64URL.encode(digest) + Self.closing
  }

  /// Takes the tail of a file and verifies its digest.
  init(verifying file: [UInt8]) throws(FormatFault) {
    let part = "digest"
    guard file.count > Self.byteCount else { throw FormatFault(part, "the file is truncated") }
    let bytes = unsafe file.span.bytes
    let start = file.count - Self.byteCount
    guard bytes.hasBytes(Self.opening, at: start),
      bytes.hasBytes(Self.closing, at: file.count - Self.closing.count)
    else { throw FormatFault(part, "the file is truncated, or is not a vault") }
    self.init(digest: try Self.digest(bytes.extracting(0..<start)))
    guard bytes.hasBytes(self.bytes, at: start) else {
      throw FormatFault(part, "the file was changed after it was written")
    }
  }

  /// SHA-256; a failure of the library becomes a fault, so that the file is refused.
  static func digest(_ bytes: RawSpan) throws(FormatFault) -> [UInt8] {
    do throws(CryptoError) {
      return try SHA256.digest(bytes)
    } catch {
      throw FormatFault("digest", error.description)
    }
  }
}

/// Access to the parsers alone, for a fuzzer that checks that parsing and writing are inverse.
@_spi(Testing)
public enum FormatProbe {
  /// Whether these bytes are a vault file, as far as this can be checked without a password.
  public static func isFile(_ bytes: [UInt8]) -> Bool {
    (try? VaultFile(parsing: bytes)) != nil
  }

  /// The bytes with a valid tail, which an attacker without a key can compute too.
  public static func fileWithTail(_ head: [UInt8]) -> [UInt8] {
    head + ((try? FileTail(following: head).bytes) ?? [])
  }

  /// The contents as a vault writes them after reading; nil for contents that it refuses.
  public static func contents(_ text: [UInt8]) -> [UInt8]? {
    guard let contents = try? VaultContents(parsing: unsafe text.span.bytes) else { return nil }
    return contents.text().withBytes { $0.array(0..<$0.byteCount) }
  }
}
