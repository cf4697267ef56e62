internal import VaultCrypto

/// The report of a successful verification; a failed one throws an error.
public struct VaultVerification: Sendable, Equatable {
  /// The size of the vault in the store, in bytes.
  ///
  /// The bytes have the form of this format version, and the digest and the key digest match. This
  /// excludes accidental damage, but not tampering.
  public let byteCount: Int

  /// The results that need the keys; nil for a locked vault, which is not authenticated.
  public let opened: Opened?

  /// The results of a verification with the keys.
  public struct Opened: Sendable, Equatable {
    /// The number of times the vault has been written.
    public let generation: Int
    /// The number of items; each was read.
    public let itemCount: Int
  }
}

extension Vault {
  /// Reads the vault from the store and checks it as far as possible.
  ///
  /// Without keys it checks the digest, the structure and that the parts belong together. While the
  /// vault is unlocked, it also checks that every byte is authentic, and reads each item. It cannot
  /// check the slots other than the one that opened the vault, because their secrets are unknown.
  ///
  /// - Throws: `damaged`, `newerVersion`; `doesNotExist` and the other errors of reading a store;
  ///   `locked` if the vault has new keys since it was unlocked.
  public func verify() throws(VaultError) -> VaultVerification {
    let bytes = try store.existingBytes(of: id)
    let file = try parse(bytes)
    guard !isLocked else { return VaultVerification(byteCount: bytes.count, opened: nil) }
    guard let contentKey = try withContents({ $0.contentKey(fitting: file.key) }) else {
      throw .newKeys(id)
    }
    let state = try open(file, contentKey: contentKey)
    return VaultVerification(
      byteCount: bytes.count,
      opened: VaultVerification.Opened(
        generation: state.contents.generation, itemCount: state.contents.items.entries.count))
  }
}
