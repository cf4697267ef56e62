internal import Glibc
internal import VaultCrypto

/// Reads a descriptor to its end, from the kernel straight into locked memory.
enum SecretInput {
  static func read(
    descriptor: Int32, name: String, maximumByteCount: Int
  ) throws(CommandFailure) -> SecretBytes {
    var bytes = SecretBytes(zeroCount: maximumByteCount + 1)
    var byteCount = 0
    while byteCount <= maximumByteCount {
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...])
        return unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
      }
      if count == 0 { return bytes.copy(0..<byteCount) }
      if count > 0 {
        byteCount += count
      } else if errno != EINTR {
        throw CommandFailure(.inputOutput, "\(name) cannot be read: \(systemMessage(errno))")
      }
    }
    throw CommandFailure(.badData, "\(name) holds more than \(maximumByteCount) bytes")
  }
}
