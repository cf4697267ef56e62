internal import VaultCrypto

/// All items of a vault: one secret with all names and values in sequence, and a table of their
/// ranges.
///
/// The entries are in ascending order of the names' bytes.
struct ItemTable: ~Copyable, Sendable {
  /// The ranges of an item's name and value in the secret.
  struct Entry: Sendable {
    var name: Range<Int>
    var value: Range<Int>
    var kind: VaultItem.Kind
  }

  let bytes: SecretBytes
  let entries: [Entry]

  /// The total size of all names and values in bytes.
  var byteCount: Int {
    entries.reduce(0) { $0 + $1.name.count + $1.value.count }
  }

  borrowing func copy() -> ItemTable {
    ItemTable(bytes: bytes.copy(), entries: entries)
  }

  /// The index of a name, or the index at which it would be inserted.
  borrowing func position(of name: [UInt8]) -> (index: Int, isPresent: Bool) {
    bytes.withBytes { bytes in
      let wanted = unsafe name.span.bytes
      var low = 0
      var high = entries.count
      while low < high {
        let middle = (low + high) / 2
        let order = bytes.compare(entries[middle].name, to: 0..<name.count, of: wanted)
        if order == 0 { return (middle, true) }
        if order < 0 { low = middle + 1 } else { high = middle }
      }
      return (low, false)
    }
  }

  borrowing func item(at index: Int) -> VaultItem {
    VaultItem(kind: entries[index].kind, bytes: bytes.copy(entries[index].value))
  }

  borrowing func names() -> [VaultItemName] {
    bytes.withBytes { bytes in
      entries.map { entry in
        VaultItemName(
          name: String(decoding: bytes.array(entry.name), as: UTF8.self), kind: entry.kind)
      }
    }
  }

  /// A copy of the table with one item added or replaced.
  borrowing func setting(
    _ name: [UInt8], to value: borrowing SecretBytes, kind: VaultItem.Kind
  ) -> ItemTable {
    let (index, isPresent) = position(of: name)
    var builder = ItemTableBuilder(byteCount: byteCount + name.count + value.byteCount)
    bytes.withBytes { bytes in
      for entry in entries[..<index] { builder.append(entry, of: bytes) }
      value.withBytes { value in
        builder.append(
          name: unsafe name.span.bytes, 0..<name.count, value: value, 0..<value.byteCount,
          kind: kind)
      }
      for entry in entries[(isPresent ? index + 1 : index)...] { builder.append(entry, of: bytes) }
    }
    return builder.table()
  }

  /// A copy of the table without one item.
  borrowing func removing(at index: Int) -> ItemTable {
    var builder = ItemTableBuilder(byteCount: byteCount)
    bytes.withBytes { bytes in
      for (position, entry) in entries.enumerated() where position != index {
        builder.append(entry, of: bytes)
      }
    }
    return builder.table()
  }
}

extension ItemTable {
  init(parsing text: RawSpan, _ range: Range<Int>) throws(FormatFault) {
    // Names and values never need more room than their JSON form.
    var builder = ItemTableBuilder(byteCount: range.count)
    try JSONText.forEachMember(in: text, range, of: "items") {
      (name, value) throws(FormatFault) in
      try builder.append(escapedName: name, value: value, of: text)
    }
    let table = builder.table()
    guard table.byteCount <= VaultItem.maximumTotalByteCount else {
      throw FormatFault("items", "too many bytes")
    }
    self = table
  }

  borrowing func write(to writer: inout ByteWriter) {
    writer.append("{")
    bytes.withBytes { bytes in
      var isFirst = true
      for entry in entries {
        if !isFirst { writer.append(",") }
        isFirst = false
        writer.appendJSONString(bytes, entry.name)
        switch entry.kind {
        case .string:
          writer.append(":{\"string\":")
          writer.appendJSONString(bytes, entry.value)
        case .binary:
          writer.append(":{\"binary\":")
          writer.appendBase64URL(bytes, entry.value)
        }
        writer.append("}")
      }
    }
    writer.append("}")
  }
}

/// Builds an ``ItemTable`` by appending names and values.
struct ItemTableBuilder: ~Copyable {
  private var bytes: SecretBytes
  private var entries: [ItemTable.Entry] = []
  private var end = 0

  /// - Parameter byteCount: at least the total size of the names and values to append.
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
    let name = copy(name.extracting(nameRange))
    let value = copy(value.extracting(valueRange))
    entries.append(ItemTable.Entry(name: name, value: value, kind: kind))
  }

  /// Appends an item from its JSON form, unescaped and decoded; names must be in ascending order.
  mutating func append(
    escapedName: Range<Int>, value: Range<Int>, of text: RawSpan
  ) throws(FormatFault) {
    let part = "items"
    let name = try unsafe fill { (target) throws(FormatFault) in
      try unsafe JSONString.unescape(text, escapedName, into: target, of: part)
    }
    guard (1...VaultItem.maximumNameByteCount).contains(name.count) else {
      throw FormatFault(part, "a name is empty or too long")
    }
    if let last = entries.last?.name {
      let order = bytes.withBytes { $0.compare(last, to: name, of: $0) }
      guard order < 0 else { throw FormatFault(part, "names are repeated or out of order") }
    }
    let isString = text.hasBytes("{\"string\":".utf8, at: value.lowerBound)
    let kind: VaultItem.Kind = isString ? .string : .binary
    let member = try JSONText.members([kind.rawValue], in: text, value, of: part)[0]
    let content = try unsafe fill { (target) throws(FormatFault) in
      switch kind {
      case .string:
        try unsafe JSONString.unescape(
          text, JSONText.escapedString(in: text, member, of: part), into: target, of: part)
      case .binary:
        try unsafe Base64URL.decode(
          text, JSONText.plainString(in: text, member, of: part), into: target, of: part)
      }
    }
    guard content.count <= VaultItem.maximumByteCount else {
      throw FormatFault(part, "a value is too large")
    }
    entries.append(ItemTable.Entry(name: name, value: content, kind: kind))
  }

  consuming func table() -> ItemTable {
    ItemTable(bytes: bytes, entries: entries)
  }

  private mutating func copy(_ source: RawSpan) -> Range<Int> {
    unsafe fill { target in
      unsafe source.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
      return source.byteCount
    }
  }

  /// Lets `body` write to the free bytes, and returns the range of those that it wrote.
  ///
  /// - Parameter body: returns how many bytes it wrote.
  private mutating func fill<E>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> Int
  ) throws(E) -> Range<Int> {
    let start = end
    end += try unsafe bytes.withUnsafeMutableBytes { (target) throws(E) in
      try unsafe body(UnsafeMutableRawBufferPointer(rebasing: target[start...]))
    }
    return start..<end
  }
}
