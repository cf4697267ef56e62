public import VaultCrypto

/// A value that a vault keeps under a name.
public struct VaultItem: ~Copyable, Sendable {
  /// What a value is.
  public enum Kind: String, Sendable, Hashable {
    /// UTF-8 text.
    case string
    /// Any bytes.
    case binary
  }

  /// What the value is.
  public let kind: Kind

  /// The value; for a string its UTF-8 bytes.
  public let bytes: SecretBytes

  /// The longest name in bytes.
  public static let maximumNameByteCount = 255
  /// The largest value in bytes: 1 MiB.
  public static let maximumByteCount = 1 << 20
  /// The most that all names and values of a vault have together: 16 MiB.
  public static let maximumTotalByteCount = 16 << 20
}

/// The name of an item, with its kind.
///
/// Names are secret on disk; here they are a `String`, of which copies may remain in memory.
public struct VaultItemName: Sendable, Hashable {
  /// The name.
  public let name: String
  /// What the value is.
  public let kind: VaultItem.Kind
}
