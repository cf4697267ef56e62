extension AttemptRecord {
  /// The most bytes that a record may have.
  static let maximumByteCount = 4096
  private static let version = 1

  /// Takes apart the file `<id>.retry`.
  init(parsing file: [UInt8]) throws(FormatFault) {
    let part = "attempts"
    guard file.last == UInt8(ascii: "\n") else { throw FormatFault(part, "cut short") }
    let bytes = unsafe file.span.bytes
    let members = try JSONText.members(
      ["version", "failures", "retryAt", "openedAt"], in: bytes, 0..<file.count - 1, of: part)
    guard try JSONText.number(in: bytes, members[0], of: part) == Self.version else {
      throw FormatFault(part, "not of version \(Self.version)")
    }
    failureCount = try JSONText.number(in: bytes, members[1], of: part)
    retryAtMilliseconds = try Self.moment(bytes, members[2], of: part)
    openedAtMilliseconds = try Self.moment(bytes, members[3], of: part)
  }

  private static func moment(
    _ bytes: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Int? {
    JSONText.isNull(in: bytes, range) ? nil : try JSONText.number(in: bytes, range, of: part)
  }

  /// The bytes of the file.
  var bytes: [UInt8] {
    func text(_ moment: Int?) -> String { moment.map(String.init) ?? "null" }
    return Array(
      """
      {"version":\(Self.version),"failures":\(failureCount),\
      "retryAt":\(text(retryAtMilliseconds)),"openedAt":\(text(openedAtMilliseconds))}\n
      """.utf8)
  }
}
