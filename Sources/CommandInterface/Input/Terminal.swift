internal import DataVault
package import Glibc
internal import Synchronization
internal import VaultCrypto

/// The user's terminal, `/dev/tty`.
///
/// Standard input stays free for data.
package struct Terminal: ~Copyable {
  private let descriptor: Int32

  /// Whether the terminal understands the escape sequences that move the cursor and erase.
  ///
  /// The program uses no other sequence. It prints no colors, so NO_COLOR changes nothing.
  package static var movesCursor: Bool { ![nil, "dumb"].contains(Environment["TERM"]) }

  /// Erases the rest of the line: console_codes(4).
  package static let eraseToEndOfLine = "\u{1B}[K"
  /// Moves to the first column of the first line, and erases everything below.
  package static let eraseScreen = "\u{1B}[H\u{1B}[J"

  /// Opens the terminal; nil if the process has none.
  package init?() {
    descriptor = unsafe open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    if descriptor < 0 { return nil }
  }

  deinit {
    close(descriptor)
  }

  /// Asks for one line, with the echo off.
  ///
  /// The kernel writes the line directly into locked memory.
  ///
  /// - Parameter hint: the options that replace the question.
  func readSecret(prompt: String, hint: String) throws(CommandFailure) -> SecretBytes {
    try waitForForeground(hint: hint)
    let echo = SilencedEcho(descriptor, question: Array(prompt.onOneLine.utf8))
    defer {
      echo.restore()
      _ = OutputDescriptor(number: descriptor).write([UInt8(ascii: "\n")])
    }
    return try readLine(hint: hint)
  }

  /// Stops the process while it is in the background, before it changes the terminal.
  ///
  /// In the background, a read of no bytes makes the kernel stop the process, or fails.
  private func waitForForeground(hint: String) throws(CommandFailure) {
    // The threads of the concurrency runtime block the signal. The kernel then fails the read.
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, SIGTTIN)
    unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
    while isInBackground {
      if read(descriptor, nil, 0) < 0, errno != EINTR { throw failure(errno, hint) }
    }
  }

  /// Whether another process group than this one is in the foreground.
  ///
  /// A closed terminal has no foreground process group.
  private var isInBackground: Bool {
    let foreground = tcgetpgrp(descriptor)
    return foreground > 0 && foreground != getpgrp()
  }

  private func readLine(hint: String) throws(CommandFailure) -> SecretBytes {
    var line = SecretBytes(zeroCount: SecretSource.maximumByteCount)
    var byteCount = 0
    while byteCount < line.byteCount {
      waitForInput()
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
    // The kernel drops the rest of a longer line without an error.
    guard byteCount < Self.cutByteCount else {
      throw CommandFailure(
        .badData,
        "what was entered is longer than a terminal's line can be: the terminal has cut it off",
        hint: hint)
    }
    return line.copy(0..<byteCount)
  }

  /// Waits until there is something to read, and no other command asks.
  ///
  /// When a stopped process continues, this thread continues at the same time as the signal handler
  /// that waits for the other command.
  private func waitForInput() {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while unsafe poll(&entry, 1, -1) < 0 && errno == EINTR
      || !ownsTerminal.load(ordering: .acquiring)
    {
      usleep(10_000)
    }
  }

  /// A line of this many bytes can have lost its end.
  ///
  /// Linux keeps 4,095 bytes of a line, and 4,093 if the terminal marks parity errors (PARMRK): see
  /// `N_TTY_BUF_SIZE` in drivers/tty/n_tty.c and termios(3), "Canonical and noncanonical mode".
  private static let cutByteCount = 4093

  /// The failure to report when the terminal cannot be read.
  private func failure(_ errorNumber: Int32?, _ hint: String) -> CommandFailure {
    // read(2) fails with EIO where the kernel cannot stop a process in the background: no shell
    // could continue the process, or it ignores SIGTTIN.
    if errorNumber == EIO, isInBackground {
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
/// Every fatal signal except SIGKILL first turns the echo on. Control-Z turns it on while the
/// process is stopped. When the process continues, the echo is off again and the question is asked
/// again.
struct SilencedEcho {
  private typealias Handler = @convention(c) (Int32) -> Void
  private let handlers: [(number: Int32, before: sighandler_t?)]

  /// Turns the echo off, then asks.
  ///
  /// An immediate answer is therefore neither shown nor lost.
  ///
  /// - Parameter question: the prompt. It is written again when a stopped process continues.
  init(_ descriptor: Int32, question: [UInt8]) {
    var settings = termios()
    let lock = TerminalLock(descriptor)
    // Another command that asks has its own settings in place.
    lock.take()
    ownsTerminal.store(true, ordering: .releasing)
    guard unsafe tcgetattr(descriptor, &settings) == 0 else {
      handlers = []
      lock.close()
      _ = OutputDescriptor(number: descriptor).write(question)
      return
    }
    unsafe silencedTerminal = SilencedTerminal(
      descriptor: descriptor, lock: lock, settings: settings, question: question)
    let mine: [(Int32, Handler)] =
      Self.fatalSignals.map { ($0, restoreAndDie) } + [
        (SIGTSTP, restoreAndStop), (SIGCONT, silenceAgain),
      ]
    handlers = mine.map { number, handler in
      let before = signal(number, handler)
      // Signals that nohup(1) ignores stay ignored, and so does SIGPIPE, which this program
      // ignores.
      if isIgnoring(before) { signal(number, SIG_IGN) }
      return (number, before)
    }
    unsafe silencedTerminal?.silence()
    unsafe silencedTerminal?.ask()
  }

  /// The signals that can be caught and end the process by default: see signal(7).
  ///
  /// Signals 32 and 33 are missing because the C library uses them.
  private static let fatalSignals =
    [
      SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2,
      SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
      SIGSYS,
    ] + Array(34...64)  // SIGRTMIN to SIGRTMAX

  /// Turns the echo on, and restores the previous signal handlers.
  func restore() {
    unsafe silencedTerminal?.restore()
    for (number, before) in handlers { signal(number, before ?? SIG_DFL) }
    unsafe silencedTerminal?.forget()
    unsafe silencedTerminal = nil
  }
}

/// A terminal's original settings, with the operations that turn the echo off and restore them.
///
/// Its methods call only functions that signal-safety(7) allows, and flock(2), a bare system call.
@safe private struct SilencedTerminal {
  private let descriptor: Int32
  private let lock: TerminalLock
  private let settings: termios
  private let question: UnsafeMutableBufferPointer<UInt8>

  init(descriptor: Int32, lock: TerminalLock, settings: termios, question: [UInt8]) {
    self.descriptor = descriptor
    self.lock = lock
    self.settings = settings
    unsafe self.question = .allocate(capacity: question.count)
    _ = unsafe self.question.initialize(from: question)
  }

  /// Turns the echo off.
  ///
  /// - Parameter typed: how tcsetattr(3) treats earlier input. `TCSAFLUSH` discards it, because the
  ///   terminal showed it.
  func silence(_ typed: Int32 = TCSAFLUSH) {
    lock.take()
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO)
    silent.c_lflag |= tcflag_t(ICANON)
    unsafe tcsetattr(descriptor, typed, &silent)
    ownsTerminal.store(true, ordering: .releasing)
  }

  func restore() {
    ownsTerminal.store(false, ordering: .releasing)
    var settings = settings
    unsafe tcsetattr(descriptor, TCSAFLUSH, &settings)
    lock.release()
  }

  func ask() {
    _ = unsafe write(descriptor, question.baseAddress, question.count)
  }

  func forget() {
    unsafe question.deallocate()
    lock.close()
  }
}

/// A lock that each question at a terminal holds, so that two commands of a pipeline ask one after
/// the other.
///
/// The second one would read parts of the first answer, and show or silence what is typed at the
/// wrong time. The lock is an flock(2) of the terminal's own file: `/dev/tty` is one file for all
/// terminals. Without a right to that file there is no lock.
private struct TerminalLock {
  private let descriptor: Int32

  init(_ terminal: Int32) {
    var device: UInt32 = 0
    let getDevice = UInt(0x8004_5432)  // TIOCGDEV, a macro that Swift does not import
    guard unsafe ioctl(terminal, getDevice, &device) == 0 else {
      descriptor = -1
      return
    }
    // The kernel's encoding of a device number: see new_encode_dev in linux/kdev_t.h.
    let (major, minor) = (device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00)
    let path: String? =
      switch (major, minor) {
      case (136, _): "/dev/pts/\(minor)"
      case (4, 0..<64): "/dev/tty\(minor)"
      default: nil  // a serial line: no second command asks there
      }
    descriptor = path.map { unsafe open($0, O_RDONLY | O_NOCTTY | O_CLOEXEC) } ?? -1
  }

  /// Waits for the other command, if one asks.
  func take() { if descriptor >= 0 { flock(descriptor, LOCK_EX) } }

  func release() { if descriptor >= 0 { flock(descriptor, LOCK_UN) } }

  func close() { if descriptor >= 0 { Glibc.close(descriptor) } }
}

/// The terminal to restore.
// Unsafe: a signal handler can reach only a global. It is set before the handlers are installed,
// and only one prompt runs at a time.
nonisolated(unsafe) private var silencedTerminal: SilencedTerminal?

/// Whether the question reads from the terminal: not while the process stops, or waits for another
/// command afterwards.
private let ownsTerminal = Atomic(false)

/// Whether a signal's handler ignores it.
package func isIgnoring(_ handler: sighandler_t?) -> Bool {
  unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
}

private func restoreAndDie(_ number: Int32) {
  unsafe silencedTerminal?.restore()
  signal(number, SIG_DFL)
  raise(number)
}

/// Stops the process, with the echo on while it is stopped.
private func restoreAndStop(_ number: Int32) {
  unsafe silencedTerminal?.restore()
  signal(number, SIG_DFL)
  // The signal is blocked in its own handler.
  var set = sigset_t()
  unsafe sigemptyset(&set)
  unsafe sigaddset(&set, number)
  unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
  raise(number)
  signal(number, restoreAndStop)
  // The kernel does not stop an orphaned process group, so this also runs without a stop. After a
  // stop the SIGCONT handler has asked again, and the answer might already be typed: TCSANOW keeps
  // it.
  unsafe silencedTerminal?.silence(TCSANOW)
}

/// Turns the echo off again when the process continues: the shell might have changed the settings.
private func silenceAgain(_: Int32) {
  unsafe silencedTerminal?.silence()
  unsafe silencedTerminal?.ask()
}
