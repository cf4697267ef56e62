internal import VaultCrypto

/// All items: one secret that holds names and values one behind the other, and where each stands.
///
/// The entries stand in ascending order of the names' bytes.
struct ItemTable: ~Copyable, Sendable {
  /// Where an item stands in the secret.
  struct Entry: Sendable {
    var name: Range<Int>
    var value: Range<Int>
    var kind: VaultItem.Kind
  }

  let bytes: SecretBytes
  let entries: [Entry]

  init() {
    bytes = SecretBytes(copying: [])
    entries = []
  }

  init(bytes: consuming SecretBytes, entries: [Entry]) {
    self.bytes = bytes
    self.entries = entries
  }

  /// What all names and values have together.
  var byteCount: Int {
    entries.reduce(0) { $0 + $1.name.count + $1.value.count }
  }

  borrowing func copy() -> ItemTable {
    ItemTable(bytes: bytes.copy(), entries: entries)
  }

  /// Where a name stands, or would stand.
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

  /// A table with one item more, or another value for it.
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

  /// A table without one item.
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
