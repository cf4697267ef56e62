internal import FileLayer
internal import Glibc
internal import SystemPackage
package import VaultCrypto

/// Reads a descriptor to its end, from the kernel straight into locked memory.
package struct SecretReader {
  /// The size of the first buffer.
  ///
  /// A longer secret moves into a buffer of twice the size. A small first buffer saves time: locking and wiping a
  /// page costs the same whether it is used or not.
  private static let firstByteCount = 16 << 10

  private let descriptor: Int32
  /// What a message calls the descriptor.
  private let name: String
  /// The time at which reading is given up, on the continuous clock; nil for never.
  private let deadline: ContinuousClock.Instant?

  package init(_ descriptor: Int32, name: String, deadline: ContinuousClock.Instant? = nil) {
    self.descriptor = descriptor
    self.name = name
    self.deadline = deadline
  }

  /// Reads a secret: one newline at its end does not belong to it.
  package func readSecret() throws(VaultError) -> SecretBytes {
    try read(maximumByteCount: SecretSource.maximumByteCount, dropsFinalNewline: true)
  }

  /// Reads every byte.
  ///
  /// - Throws: `secretTooLarge`, `unreadable`; `secretUnavailable` after the deadline.
  package func read(
    maximumByteCount: Int, dropsFinalNewline: Bool = false
  ) throws(VaultError) -> SecretBytes {
    let limit = maximumByteCount + (dropsFinalNewline ? 2 : 1)
    var bytes = SecretBytes(zeroCount: min(Self.firstByteCount, limit))
    var byteCount = 0
    while byteCount < limit {
      if byteCount == bytes.byteCount { bytes = bytes.grown(to: min(2 * byteCount, limit)) }
      if deadline != nil { try awaitInput() }
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...])
        return unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
      }
      if count == 0 {
        if dropsFinalNewline, bytes.hasNewline(before: byteCount) { byteCount -= 1 }
        if byteCount <= maximumByteCount { return bytes.copy(0..<byteCount) }
        break
      }
      if count > 0 {
        byteCount += count
      } else if errno == EAGAIN {
        try awaitInput()
      } else if errno != EINTR {
        throw .unreadableSecret(name, Errno(rawValue: errno))
      }
    }
    throw VaultError(.secretTooLarge, "\(name) has more than \(maximumByteCount) bytes")
  }

  /// Waits until the descriptor has input or ends.
  private func awaitInput() throws(VaultError) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let rest = deadline.map { $0 - .now }
      if let rest, rest <= .zero {
        throw VaultError(.secretUnavailable, "\(name) has not ended within its time limit")
      }
      let limit = rest.map { Int32(clamping: $0.wholeMilliseconds) } ?? -1
      let count = unsafe poll(&entry, 1, limit)
      if count > 0 || count < 0 && errno != EINTR { return }
    }
  }
}

extension SecretBytes {
  /// A copy of the bytes, followed by zeros.
  fileprivate borrowing func grown(to byteCount: Int) -> SecretBytes {
    unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }

  fileprivate borrowing func hasNewline(before end: Int) -> Bool {
    withBytes {
      unsafe end > 0 && $0.unsafeLoad(fromByteOffset: end - 1, as: UInt8.self) == 0x0A
    }
  }
}
