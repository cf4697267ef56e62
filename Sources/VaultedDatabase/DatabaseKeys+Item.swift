internal import DataVault
internal import VaultCrypto

/// The content of a connection profile's item: `docs/explanation/vaulted-database.md`, "Connection profiles".
///
/// 32 bytes are the key; 64 are the key and the new key of a change under way. One item holds both,
/// so that one write of the vault changes both.
extension DatabaseKeys {
  static let keyByteCount = 32

  /// Reads an item; nil if it is not a profile's.
  init?(item: borrowing VaultItem) {
    guard item.kind == .binary else { return nil }
    switch item.bytes.byteCount {
    case Self.keyByteCount: self.init(current: item.bytes.copy())
    case 2 * Self.keyByteCount:
      self.init(
        current: item.bytes.copy(0..<Self.keyByteCount),
        pending: item.bytes.copy(Self.keyByteCount..<2 * Self.keyByteCount))
    default: return nil
    }
  }

  /// The bytes of the item.
  borrowing func itemBytes() -> SecretBytes {
    switch pending {
    case .none: return current.copy()
    case .some(let pending):
      var bytes = SecretBytes(zeroCount: 2 * Self.keyByteCount)
      unsafe bytes.withUnsafeMutableBytes { target in
        unsafe current.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
        unsafe pending.withUnsafeBytes { source in
          unsafe UnsafeMutableRawBufferPointer(rebasing: target[Self.keyByteCount...])
            .copyMemory(from: source)
        }
      }
      return bytes
    }
  }
}
