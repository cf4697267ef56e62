internal import Glibc
internal import VaultCrypto

/// The person at `/dev/tty`: standard input may be carrying messages.
struct Terminal: ~Copyable {
  private let descriptor: Int32

  /// Nil when the process has no terminal.
  init?() {
    descriptor = unsafe open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    if descriptor < 0 { return nil }
  }

  deinit {
    close(descriptor)
  }

  /// Asks for one line, which is not shown.
  ///
  /// The line goes from the kernel straight into locked memory.
  func readSecret(prompt: String) throws(CommandFailure) -> SecretBytes {
    let echo = SilencedEcho(descriptor, question: Array(prompt.utf8))
    defer {
      echo.restore()
      _ = OutputDescriptor(number: descriptor).write([UInt8(ascii: "\n")])
    }
    return try readLine()
  }

  private func readLine() throws(CommandFailure) -> SecretBytes {
    var line = SecretBytes(zeroCount: SecretSource.maximumByteCount)
    var byteCount = 0
    while byteCount < line.byteCount {
      let count = unsafe line.withUnsafeMutableBytes { buffer in
        unsafe read(descriptor, buffer.baseAddress?.advanced(by: byteCount), 1)
      }
      if count < 0, errno == EINTR { continue }
      guard count == 1 else {
        throw CommandFailure(.notPermitted, "the terminal closed before anything was entered")
      }
      let isEnd = line.withBytes {
        unsafe $0.unsafeLoad(fromByteOffset: byteCount, as: UInt8.self) == 0x0A
      }
      if isEnd { break }
      byteCount += 1
    }
    return line.copy(0..<byteCount)
  }
}
