internal import VaultCrypto

/// Puts names and values one behind the other.
struct ItemTableBuilder: ~Copyable {
  private var bytes: SecretBytes
  private var entries: [ItemTable.Entry] = []
  private var end = 0

  /// - Parameter byteCount: at least as much as all names and values that will be appended.
  init(byteCount: Int) {
    bytes = SecretBytes(zeroCount: byteCount)
  }

  mutating func append(_ entry: ItemTable.Entry, of source: RawSpan) {
    append(name: source, entry.name, value: source, entry.value, kind: entry.kind)
  }

  mutating func append(
    name: RawSpan, _ nameRange: Range<Int>, value: RawSpan, _ valueRange: Range<Int>,
    kind: VaultItem.Kind
  ) {
    let name = copy(name, nameRange)
    let value = copy(value, valueRange)
    entries.append(ItemTable.Entry(name: name, value: value, kind: kind))
  }

  /// Appends an item as it stands in JSON, unescaped and decoded; names must ascend.
  mutating func append(
    escapedName: Range<Int>, value: Range<Int>, of text: RawSpan
  ) throws(FormatFault) {
    let part = "items"
    let name = try unescape(text, escapedName, of: part)
    guard (1...VaultItem.maximumNameByteCount).contains(name.count) else {
      throw FormatFault(part, "a name of a length that none may have")
    }
    if let last = entries.last?.name {
      let order = bytes.withBytes { $0.compare(last, to: name, of: $0) }
      guard order < 0 else { throw FormatFault(part, "names are repeated or out of order") }
    }
    let kind: VaultItem.Kind
    let content: Range<Int>
    if text.hasBytes("{\"string\":".utf8, at: value.lowerBound) {
      kind = .string
      let members = try JSONText.members(["string"], in: text, value, of: part)
      content = try unescape(
        text, try JSONText.escapedString(in: text, members[0], of: part), of: part)
    } else {
      kind = .binary
      let members = try JSONText.members(["binary"], in: text, value, of: part)
      content = try decode(
        text, try JSONText.plainString(in: text, members[0], of: part), of: part)
    }
    guard content.count <= VaultItem.maximumByteCount else {
      throw FormatFault(part, "a value is too large")
    }
    entries.append(ItemTable.Entry(name: name, value: content, kind: kind))
  }

  consuming func table() -> ItemTable {
    ItemTable(bytes: bytes, entries: entries)
  }

  private mutating func copy(_ source: RawSpan, _ range: Range<Int>) -> Range<Int> {
    let start = end
    unsafe bytes.withUnsafeMutableBytes { target in
      unsafe source.extracting(range).withUnsafeBytes { source in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[start..<start + range.count])
          .copyMemory(from: source)
      }
    }
    end += range.count
    return start..<end
  }

  private mutating func unescape(
    _ text: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Range<Int> {
    let start = end
    let count = try unsafe bytes.withUnsafeMutableBytes { (target) throws(FormatFault) in
      try unsafe JSONString.unescape(
        text, range, into: UnsafeMutableRawBufferPointer(rebasing: target[start...]), of: part)
    }
    end += count
    return start..<end
  }

  private mutating func decode(
    _ text: RawSpan, _ range: Range<Int>, of part: String
  ) throws(FormatFault) -> Range<Int> {
    let start = end
    let isValid = unsafe bytes.withUnsafeMutableBytes { target in
      unsafe Base64URL.decode(
        text, range, into: UnsafeMutableRawBufferPointer(rebasing: target[start...]))
    }
    guard isValid, let count = Base64URL.decodedCount(range.count) else {
      throw FormatFault(part, "not canonical base64url")
    }
    end += count
    return start..<end
  }
}
