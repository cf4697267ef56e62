public import VaultCrypto

extension Vault {
  /// Stores a value under a name and replaces an earlier value; durable on return.
  ///
  /// - Parameters:
  ///   - kind: a string must be valid UTF-8.
  ///   - name: 1 to 255 bytes of UTF-8. It is encrypted on disk, but a `String` leaves copies in
  ///     memory.
  /// - Throws: `locked`, `nameEmpty`, `nameTooLong`, `valueTooLarge`, `vaultFull`,
  ///   `invalidArgument` for a string that is not UTF-8, `writeFailed`; the errors of reading.
  public func set(
    _ value: borrowing SecretBytes, kind: VaultItem.Kind, for name: String
  ) throws(VaultError) {
    try set(value, kind: kind, for: name, replacing: true)
  }

  /// - Parameter replaces: whether an earlier value is replaced; if not, it stays.
  private func set(
    _ value: borrowing SecretBytes, kind: VaultItem.Kind, for name: String,
    replacing replaces: Bool
  ) throws(VaultError) {
    let name = try checkedItemName(name)
    guard value.byteCount <= VaultItem.maximumByteCount else {
      throw VaultError(.valueTooLarge, "the value has \(value.byteCount) bytes, more than 1 MiB")
    }
    guard kind != .string || value.withBytes({ $0.isUTF8 }) else {
      throw VaultError(
        .invalidArgument, "the value is not UTF-8 text", hint: "store it as binary")
    }
    try change { (draft) throws(VaultError) in
      guard replaces || !draft.contents.items.position(of: name).isPresent else { return }
      let items = draft.contents.items.setting(name, to: value, kind: kind)
      guard items.byteCount <= parameters.maximumTotalByteCount else {
        throw VaultError(
          .vaultFull,
          "vault '\(id)' would hold more than \(parameters.maximumTotalByteCount) bytes",
          hint: "remove an item first")
      }
      draft.contents.items = items
      draft.maximumTextByteCount = parameters.maximumItemTextByteCount
    }
  }

  /// The value under a name.
  ///
  /// - Throws: `locked`, `itemNotFound`, `nameEmpty`, `nameTooLong`; the errors of reading.
  public func item(_ name: String) throws(VaultError) -> VaultItem {
    let name = try checkedItemName(name)
    return try withContents { (opened) throws(VaultError) in
      let position = opened.contents.items.position(of: name)
      guard position.isPresent else { throw .itemNotFound(id) }
      return opened.contents.items.item(at: position.index)
    }
  }

  /// The value under a name, which must be of this kind.
  ///
  /// - Throws: `wrongItemKind`; otherwise as ``item(_:)``.
  public func item(_ name: String, kind: VaultItem.Kind) throws(VaultError) -> VaultItem {
    let item = try item(name)
    guard item.kind == kind else {
      throw VaultError(.wrongItemKind, "the item in vault '\(id)' is not a \(kind.rawValue)")
    }
    return item
  }

  /// The value under a name; if there is none, stores `value` and returns that; durable on return.
  ///
  /// Of several processes that call it at the same time, one stores its value, and all return it.
  ///
  /// - Throws: the errors of ``set(_:kind:for:)``.
  package func item(
    _ name: String, orStoring value: consuming SecretBytes, kind: VaultItem.Kind
  ) throws(VaultError) -> VaultItem {
    do throws(VaultError) {
      return try item(name)
    } catch {
      guard error.code == .itemNotFound else { throw error }
    }
    try set(value, kind: kind, for: name, replacing: false)
    return try item(name)
  }

  /// Removes a value; durable on return.
  ///
  /// - Throws: `itemNotFound`; otherwise as ``set(_:kind:for:)``.
  public func removeItem(_ name: String) throws(VaultError) {
    let name = try checkedItemName(name)
    try change { (draft) throws(VaultError) in
      let position = draft.contents.items.position(of: name)
      guard position.isPresent else { throw .itemNotFound(id) }
      draft.contents.items = draft.contents.items.removing(at: position.index)
    }
  }

  /// All names, in ascending order of their bytes.
  ///
  /// - Throws: `locked`; the errors of reading.
  public func itemNames() throws(VaultError) -> [VaultItemName] {
    try withContents { $0.contents.items.names() }
  }

  /// Stores many binary items in one durable write, for measurements of large vaults.
  ///
  /// Stored one by one, each item would rewrite all others.
  ///
  /// - Parameters:
  ///   - names: 1 to 255 bytes of UTF-8 each.
  ///   - value: the value of each item.
  /// - Throws: `locked`, `writeFailed`; the errors of reading.
  @_spi(Testing)
  public func fill(_ names: [String], with value: borrowing SecretBytes) throws(VaultError) {
    try change { (draft) throws(VaultError) in
      for name in names {
        draft.contents.items = draft.contents.items.setting(
          Array(name.utf8), to: value, kind: .binary)
      }
    }
  }

  private func checkedItemName(_ name: String) throws(VaultError) -> [UInt8] {
    let bytes = Array(name.utf8)
    guard !bytes.isEmpty else { throw VaultError(.nameEmpty, "an item's name must not be empty") }
    guard bytes.count <= VaultItem.maximumNameByteCount else {
      throw VaultError(
        .nameTooLong, "an item's name has \(bytes.count) bytes, more than 255")
    }
    return bytes
  }
}

extension VaultError {
  fileprivate static func itemNotFound(_ id: VaultID) -> VaultError {
    VaultError(.itemNotFound, "vault '\(id)' has no item with this name")
  }
}

/// A value that a vault keeps under a name.
public struct VaultItem: ~Copyable, Sendable {
  /// The type of a value.
  public enum Kind: String, Sendable, Hashable {
    /// UTF-8 text.
    case string
    /// Any bytes.
    case binary
  }

  /// The type of the value.
  public let kind: Kind

  /// The value; for a string, its UTF-8 bytes.
  public let bytes: SecretBytes

  /// The maximum size of a name in bytes.
  public static let maximumNameByteCount = 255
  /// The maximum size of a value in bytes: 1 MiB.
  public static let maximumByteCount = 1 << 20
  /// The maximum total size of a vault's names and values in bytes: 16 MiB.
  public static let maximumTotalByteCount = 16 << 20
}

/// The name of an item, with its kind.
///
/// Names are encrypted on disk. Here a name is a `String`, of which copies can remain in memory.
public struct VaultItemName: Sendable, Hashable {
  /// The name.
  public let name: String
  /// The type of the value.
  public let kind: VaultItem.Kind
}
