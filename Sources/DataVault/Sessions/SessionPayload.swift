internal import FileLayer
internal import VaultCrypto

/// What a session's key holds: 1 byte version, 8 bytes deadline, 32 bytes content key.
///
/// The deadline is in nanoseconds on the boot clock, little endian. A keyring does not outlive the
/// boot, so it needs no boot id; unlike the kernel's own timeout it does not move with the date.
struct SessionPayload: ~Copyable {
  static let version: UInt8 = 1
  static let contentKeyByteCount = 32
  static let byteCount = 1 + 8 + contentKeyByteCount

  let deadline: Duration
  let contentKey: SecretBytes

  init(deadline: Duration, contentKey: consuming SecretBytes) {
    self.deadline = deadline
    self.contentKey = contentKey
  }

  /// - Returns: nil for what this version did not write.
  init?(parsing bytes: borrowing SecretBytes) {
    guard bytes.byteCount == Self.byteCount else { return nil }
    let (version, nanoseconds) = unsafe bytes.withUnsafeBytes {
      unsafe ($0[0], UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 1, as: UInt64.self)))
    }
    guard version == Self.version, let nanoseconds = Int64(exactly: nanoseconds) else {
      return nil
    }
    deadline = .nanoseconds(nanoseconds)
    contentKey = bytes.copy(9..<Self.byteCount)
  }

  /// What is stored.
  borrowing func bytes() -> SecretBytes {
    let nanoseconds = UInt64(clamping: deadline.wholeNanoseconds).littleEndian
    return unsafe SecretBytes(byteCount: Self.byteCount) { target in
      unsafe target[0] = Self.version
      unsafe target.storeBytes(of: nanoseconds, toByteOffset: 1, as: UInt64.self)
      unsafe contentKey.withUnsafeBytes { key in
        unsafe UnsafeMutableRawBufferPointer(rebasing: target[9...]).copyMemory(from: key)
      }
    }
  }
}
