/// A mark that a database held durably before its vault stored it.
///
/// A database that does not know it is an older copy, or has lost its last commits.
package struct DatabaseAnchor: Sendable, Hashable {
  package static let idByteCount = 16

  /// Random, 16 bytes.
  package let id: [UInt8]

  /// The database's commit that wrote it.
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
    guard id.count == Self.idByteCount else { throw FormatFault(part, "its id has not 16 bytes") }
    commitNumber = Int64(try JSONText.number(in: bytes, members[1], of: part))
  }

  var text: String {
    "{\"id\":\"\(base64URLText(id))\",\"commit\":\(commitNumber)}"
  }
}
