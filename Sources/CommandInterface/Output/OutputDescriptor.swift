internal import Glibc
package import VaultCrypto

/// A descriptor to write to, which reports exactly how many bytes it has accepted.
package struct OutputDescriptor {
  /// Descriptor 1.
  package static let standardOutput = OutputDescriptor(number: STDOUT_FILENO)
  /// Descriptor 2.
  package static let standardError = OutputDescriptor(number: STDERR_FILENO)

  /// The descriptor's number.
  package let number: Int32

  /// A descriptor, which stays open.
  package init(number: Int32) {
    self.number = number
  }

  /// The result of a write.
  package struct Outcome {
    /// How many bytes the descriptor has accepted.
    package var takenByteCount: Int
    /// The error that ended the write; nil if all bytes were accepted.
    package var errorNumber: Int32?
  }

  /// Whether it is a terminal.
  package var isTerminal: Bool { isatty(number) == 1 }

  /// Writes all bytes, and waits as long as necessary.
  ///
  /// It stops at the first error.
  package func write(_ bytes: [UInt8]) -> Outcome {
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

  /// Writes all bytes, or throws.
  package func writeAll(_ bytes: [UInt8]) throws(CommandFailure) {
    if let errorNumber = write(bytes).errorNumber {
      throw Self.failure(errorNumber)
    }
  }

  /// Writes all bytes of a secret, without copying it out of its locked memory.
  package func writeAll(_ secret: borrowing SecretBytes) throws(CommandFailure) {
    if let errorNumber = unsafe secret.withUnsafeBytes({ unsafe write($0) }).errorNumber {
      throw Self.failure(errorNumber)
    }
  }

  /// The failure of a write to standard output.
  package static func failure(_ errorNumber: Int32) -> CommandFailure {
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

/// The system's message for an `errno`, in lower case.
package func systemMessage(_ errorNumber: Int32) -> String {
  unsafe String(cString: strerror(errorNumber)).lowercased()
}

/// Numbers of a table or report on standard output: for people if it is a terminal, otherwise raw.
extension OutputDescriptor {
  /// - Parameter unit: what follows the raw number.
  package static func size(byteCount: Int, unit: String = "") -> String {
    standardOutput.isTerminal ? PeopleText.size(byteCount: byteCount) : "\(byteCount)\(unit)"
  }

  /// - Parameter unit: what follows the raw number.
  package static func age(seconds: Int64, unit: String = "s") -> String {
    standardOutput.isTerminal ? PeopleText.age(seconds: seconds) : "\(seconds)\(unit)"
  }
}
