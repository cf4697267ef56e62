internal import Glibc
internal import VaultCrypto

/// Reads a descriptor to its end, from the kernel straight into locked memory.
enum SecretInput {
  /// How much is asked for first; what turns out to be longer moves to twice as much.
  ///
  /// Locked pages cost time when they are made and when they are wiped, used or not.
  private static let firstByteCount = 16 << 10

  static func read(
    descriptor: Int32, name: String, maximumByteCount: Int
  ) throws(CommandFailure) -> SecretBytes {
    var bytes = SecretBytes(zeroCount: min(firstByteCount, maximumByteCount + 1))
    var byteCount = 0
    while byteCount <= maximumByteCount {
      if byteCount == bytes.byteCount {
        bytes = bytes.grown(to: min(2 * byteCount, maximumByteCount + 1))
      }
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...])
        return unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
      }
      if count == 0 { return bytes.copy(0..<byteCount) }
      if count > 0 {
        byteCount += count
      } else if errno == EAGAIN {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        unsafe poll(&entry, 1, -1)
      } else if errno != EINTR {
        throw CommandFailure(.inputOutput, "\(name) cannot be read: \(systemMessage(errno))")
      }
    }
    throw CommandFailure(.badData, "\(name) holds more than \(maximumByteCount) bytes")
  }
}

extension SecretBytes {
  /// The same bytes with zeros behind them.
  fileprivate borrowing func grown(to byteCount: Int) -> SecretBytes {
    unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }
}
