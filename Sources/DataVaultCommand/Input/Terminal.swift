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
  ///
  /// - Parameter hint: the options that make the question needless.
  func readSecret(prompt: String, hint: String) throws(CommandFailure) -> SecretBytes {
    let echo = SilencedEcho(descriptor, question: Array(prompt.onOneLine.utf8))
    defer {
      echo.restore()
      _ = OutputDescriptor(number: descriptor).write([UInt8(ascii: "\n")])
    }
    return try readLine(hint: hint)
  }

  private func readLine(hint: String) throws(CommandFailure) -> SecretBytes {
    var line = SecretBytes(zeroCount: SecretSource.maximumByteCount)
    var byteCount = 0
    while byteCount < line.byteCount {
      let count = unsafe line.withUnsafeMutableBytes { buffer in
        unsafe read(descriptor, buffer.baseAddress?.advanced(by: byteCount), 1)
      }
      if count < 0, errno == EINTR { continue }
      guard count == 1 else { throw failure(count < 0 ? errno : nil, hint) }
      let isEnd = line.withBytes {
        unsafe $0.unsafeLoad(fromByteOffset: byteCount, as: UInt8.self) == 0x0A
      }
      if isEnd { break }
      byteCount += 1
    }
    return line.copy(0..<byteCount)
  }

  /// What it means that nothing can be read.
  private func failure(_ errorNumber: Int32?, _ hint: String) -> CommandFailure {
    // The kernel answers EIO where it cannot stop a process in the background: no shell could continue it, or
    // it ignores SIGTTIN. A terminal that has closed has no foreground.
    let foreground = tcgetpgrp(descriptor)
    if errorNumber == EIO, foreground > 0, foreground != getpgrp() {
      return CommandFailure(
        .notPermitted,
        "this command runs in the background, where it cannot read from the terminal",
        hint: "run it in the foreground (fg), or \(hint)")
    }
    guard let errorNumber, errorNumber != EIO else {
      return CommandFailure(
        .notPermitted, "the terminal closed before anything was entered", hint: hint)
    }
    return CommandFailure(
      .notPermitted, "the terminal cannot be read: \(systemMessage(errorNumber))", hint: hint)
  }
}
