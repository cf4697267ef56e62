internal import VaultCrypto

/// What was found to be right about a vault; what is wrong comes as an error.
public struct VaultVerification: Sendable, Equatable {
  /// How many bytes the store holds.
  ///
  /// They have the form of this format version, and the digest and
  /// the key digest fit: nothing is damaged by accident.
  public let byteCount: Int

  /// What opening it proved; nil for a locked vault, of which somebody may have written any part.
  public let opened: Opened?

  /// What the keys have shown.
  public struct Opened: Sendable, Equatable {
    /// How often the vault has been written.
    public let generation: Int
    /// How many items there are; each was read.
    public let itemCount: Int
  }
}

extension Vault {
  /// Reads the vault anew and checks all that can be: without keys the digest, the shape and that
  /// its parts belong together; while unlocked also that every byte is authentic, and each item.
  ///
  /// Slots other than the one it was unlocked by cannot be tried without what opens them.
  ///
  /// - Throws: `damaged`, `newerVersion`; `doesNotExist` and what else reading a store throws;
  ///   `locked` when the vault has had new keys since it was unlocked.
  public func verify() throws(VaultError) -> VaultVerification {
    guard let bytes = try store.read(id) else { throw .doesNotExist(id, in: store) }
    let file = try parse(bytes)
    guard !isLocked else { return VaultVerification(byteCount: bytes.count, opened: nil) }
    let fitting = try withContents { (state) throws(VaultError) in
      state.contentKey(fitting: file.key)
    }
    guard let contentKey = fitting else {
      throw VaultError(
        .locked, "vault '\(id)' has new keys since it was unlocked", hint: "unlock it again")
    }
    let state = try open(file, contentKey: contentKey)
    return VaultVerification(
      byteCount: bytes.count,
      opened: VaultVerification.Opened(
        generation: state.contents.generation, itemCount: state.contents.items.entries.count))
  }
}
