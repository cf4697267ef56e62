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

/// A terminal whose echo is off until ``restore()``.
///
/// A signal that ends the process turns it on first, whichever it is, except SIGKILL, and so does Control-Z for
/// as long as the process is stopped; when it goes on, the echo is off again and the question is asked again.
struct SilencedEcho {
  private typealias Handler = @convention(c) (Int32) -> Void
  private let handlers: [(number: Int32, before: sighandler_t?)]

  /// Asks once the echo is off: whoever answers at once is neither shown nor lost.
  ///
  /// - Parameter question: written again when the process goes on after a stop.
  init(_ descriptor: Int32, question: [UInt8]) {
    var settings = termios()
    guard unsafe tcgetattr(descriptor, &settings) == 0 else {
      handlers = []
      _ = OutputDescriptor(number: descriptor).write(question)
      return
    }
    unsafe silencedTerminal = SilencedTerminal(
      descriptor: descriptor, settings: settings, question: question)
    let mine: [(Int32, Handler)] =
      Self.fatalSignals.map { ($0, restoreAndDie) } + [
        (SIGTSTP, restoreAndStop), (SIGCONT, silenceAgain),
      ]
    handlers = mine.map { number, handler in
      let before = signal(number, handler)
      // What is ignored stays ignored: by nohup(1), or SIGPIPE by this program.
      if isIgnoring(before) { signal(number, SIG_IGN) }
      return (number, before)
    }
    unsafe silencedTerminal?.silence()
    unsafe silencedTerminal?.ask()
  }

  /// Those whose default ends the process and that can be caught: see signal(7).
  ///
  /// Not the C library's own, 32 and 33.
  private static let fatalSignals =
    [
      SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2,
      SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
      SIGSYS,
    ] + Array(34...64)  // SIGRTMIN to SIGRTMAX

  /// Turns the echo on again, and gives signals back their meaning.
  func restore() {
    unsafe silencedTerminal?.restore()
    for (number, before) in handlers { signal(number, before ?? SIG_DFL) }
    unsafe silencedTerminal?.forget()
    unsafe silencedTerminal = nil
  }
}

/// A terminal as it was found, and how to bring it there and back.
///
/// Its methods call nothing but what signal-safety(7) allows.
@safe private struct SilencedTerminal {
  private let descriptor: Int32
  private let settings: termios
  private let question: UnsafeMutableBufferPointer<UInt8>

  init(descriptor: Int32, settings: termios, question: [UInt8]) {
    self.descriptor = descriptor
    self.settings = settings
    unsafe self.question = .allocate(capacity: question.count)
    _ = unsafe self.question.initialize(from: question)
  }

  /// - Parameter typed: what becomes of what was typed before: `TCSAFLUSH` discards it, as it was shown.
  func silence(_ typed: Int32 = TCSAFLUSH) {
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    silent.c_lflag |= tcflag_t(ICANON)
    unsafe tcsetattr(descriptor, typed, &silent)
  }

  func restore() {
    var settings = settings
    unsafe tcsetattr(descriptor, TCSAFLUSH, &settings)
  }

  func ask() {
    _ = unsafe write(descriptor, question.baseAddress, question.count)
  }

  func forget() {
    unsafe question.deallocate()
  }
}

/// The terminal to restore.
// Unsafe: a signal handler can reach nothing but a global. It is set before the handlers are and
// one prompt runs at a time.
nonisolated(unsafe) private var silencedTerminal: SilencedTerminal?

private func isIgnoring(_ handler: sighandler_t?) -> Bool {
  unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
}

private func restoreAndDie(_ number: Int32) {
  unsafe silencedTerminal?.restore()
  signal(number, SIG_DFL)
  raise(number)
}

/// Stops as the person has asked for, who has the echo meanwhile.
private func restoreAndStop(_ number: Int32) {
  unsafe silencedTerminal?.restore()
  signal(number, SIG_DFL)
  // It is blocked in its own handler.
  var set = sigset_t()
  unsafe sigemptyset(&set)
  unsafe sigaddset(&set, number)
  unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
  raise(number)
  signal(number, restoreAndStop)
  // Also where nobody could have let it go on, and the kernel has not stopped it. Where it was stopped, the
  // question has been asked again and may be answered by now.
  unsafe silencedTerminal?.silence(TCSANOW)
}

/// The shell may have set the terminal as it likes while the process was stopped.
private func silenceAgain(_: Int32) {
  unsafe silencedTerminal?.silence()
  unsafe silencedTerminal?.ask()
}
