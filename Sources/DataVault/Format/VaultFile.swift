internal import VaultCrypto

/// The whole file, taken apart and checked as far as that goes without a password.
struct VaultFile: Sendable {
  /// The most bytes that a vault may have: 44 MiB.
  static let maximumByteCount = 44 << 20

  let key: KeyEnvelope
  let clear: ClearMembers
  let contents: ContentsEnvelope
  /// Says which file this is.
  let tail: FileTail

  /// Checks and takes apart, with the outcome that `docs/vault-format.md` orders.
  init(parsing file: [UInt8]) throws(FormatFault) {
    guard file.count <= Self.maximumByteCount else {
      throw FormatFault("file", "larger than any vault")
    }
    let tail = try FileTail(verifying: file)
    let bytes = unsafe file.span.bytes
    let whole = 0..<file.count - 1  // without the line feed, which belongs to the tail
    do throws(FormatFault) {
      try self.init(parsing: bytes, whole, tail: tail)
    } catch {
      // What breaks this version's rules may follow those of another one.
      if let version = try? Self.version(of: bytes, whole), version != ClearMembers.version {
        throw FormatFault(otherVersion: version)
      }
      throw error
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
      throw FormatFault("key", "not the one that these contents belong to")
    }
  }

  /// The bytes of a file, made whole.
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

  /// The version, found by what every version keeps: `contents.aad` and its first member.
  private static func version(
    of bytes: RawSpan, _ whole: Range<Int>
  ) throws(FormatFault) -> Int {
    let part = "version"
    guard let contents = try member("contents", in: bytes, whole, of: part),
      let additional = try member("aad", in: bytes, contents, of: part)
    else { throw FormatFault(part, "there is none") }
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
    guard let version else { throw FormatFault(part, "there is none") }
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
