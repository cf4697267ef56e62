internal import Glibc
internal import VaultCrypto

/// A descriptor that takes bytes, with an exact account of how many it took.
struct OutputDescriptor {
  static let standardOutput = OutputDescriptor(number: STDOUT_FILENO)
  static let standardError = OutputDescriptor(number: STDERR_FILENO)

  let number: Int32

  /// How far a write came.
  struct Outcome {
    var takenByteCount: Int
    /// Nil when all was taken.
    var errorNumber: Int32?
  }

  var isTerminal: Bool { isatty(number) == 1 }

  /// Writes all of it, waiting as long as it takes, or as far as it goes.
  func write(_ bytes: [UInt8]) -> Outcome {
    unsafe bytes.withUnsafeBytes { unsafe write($0) }
  }

  private func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
    var outcome = Outcome(takenByteCount: 0)
    while outcome.takenByteCount < bytes.count {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[outcome.takenByteCount...])
      let count = unsafe Glibc.write(number, rest.baseAddress, rest.count)
      if count >= 0 {
        outcome.takenByteCount += count
      } else if errno == EAGAIN {
        waitUntilWritable()
      } else if errno != EINTR {
        outcome.errorNumber = errno
        break
      }
    }
    return outcome
  }

  /// Writes all of it.
  func writeAll(_ bytes: [UInt8]) throws(CommandFailure) {
    if let errorNumber = write(bytes).errorNumber {
      throw Self.failure(errorNumber)
    }
  }

  /// Writes all of a secret, from where it lies.
  func writeAll(_ secret: borrowing SecretBytes) throws(CommandFailure) {
    if let errorNumber = unsafe secret.withUnsafeBytes({ unsafe write($0) }).errorNumber {
      throw Self.failure(errorNumber)
    }
  }

  static func failure(_ errorNumber: Int32) -> CommandFailure {
    if errorNumber == EPIPE {
      return CommandFailure(.inputOutput, "the reader of standard output has closed the pipe")
    }
    return CommandFailure(
      .inputOutput, "standard output cannot be written: \(systemMessage(errorNumber))")
  }

  private func waitUntilWritable() {
    var entry = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
    unsafe poll(&entry, 1, -1)
  }
}

/// The system's words for an errno.
func systemMessage(_ errorNumber: Int32) -> String {
  unsafe String(cString: strerror(errorNumber)).lowercased()
}
