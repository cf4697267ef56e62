package import VaultCrypto

/// What an invitation tells a joiner beside the ring.
///
/// See `docs/reference/replication-format.md`, "What a joiner must know".
package struct JoinerSettings: ~Copyable, Sendable {
  package let settings: ClusterSettings
  /// The key of the applications' tables, 32 bytes.
  package let applicationsKey: SecretBytes

  package init(_ settings: ClusterSettings, applicationsKey: consuming SecretBytes) {
    self.settings = settings
    self.applicationsKey = applicationsKey
  }

  /// The length of the key, the key, then the settings as in their item.
  package borrowing func encoded() -> SecretBytes {
    let text = settings.text
    let keyCount = applicationsKey.byteCount
    var encoded = SecretBytes(zeroCount: 1 + keyCount + text.count)
    unsafe encoded.withUnsafeMutableBytes { target in
      unsafe target[0] = UInt8(keyCount)
      unsafe applicationsKey.withUnsafeBytes {
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[1..<1 + keyCount]).copyMemory(
          from: $0)
      }
      unsafe UnsafeMutableRawBufferPointer(rebasing: target[(1 + keyCount)...])
        .copyBytes(from: text)
    }
    return encoded
  }

  /// Reads the second block of an invitation.
  ///
  /// - Throws: ``ReplicationError``.
  package init(decoding bytes: borrowing SecretBytes) throws(ReplicationError) {
    let keyCount = bytes.byteCount > 0 ? Int(bytes.copy(0..<1).array[0]) : 0
    guard bytes.byteCount > keyCount, keyCount == 32 else {
      throw ReplicationError(
        .damaged, "the invitation has no settings that this version can read",
        hint: "use the same version of datavaultd on all nodes")
    }
    settings = try ClusterSettings(parsing: bytes.copy(1 + keyCount..<bytes.byteCount).array)
    applicationsKey = bytes.copy(1..<1 + keyCount)
  }
}
