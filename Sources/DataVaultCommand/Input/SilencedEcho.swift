internal import Glibc
internal import Synchronization

/// A terminal whose echo is off until ``restore()``, also when a signal ends the process meanwhile.
struct SilencedEcho {
  private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  init(_ descriptor: Int32) {
    var settings = termios()
    guard unsafe tcgetattr(descriptor, &settings) == 0 else { return }
    unsafe silencedTerminal = (descriptor, settings)
    for number in Self.signals {
      signal(number, restoreAndDie)
    }
    settings.c_lflag &= ~tcflag_t(ECHO)
    settings.c_lflag |= tcflag_t(ICANON)
    unsafe tcsetattr(descriptor, TCSAFLUSH, &settings)
  }

  func restore() {
    restoreTerminal()
    for number in Self.signals {
      signal(number, SIG_DFL)
    }
    unsafe silencedTerminal = nil
  }
}

/// The terminal to restore.
// Unsafe: a signal handler can reach nothing but a global. It is set before the handlers are and
// one prompt runs at a time.
nonisolated(unsafe) private var silencedTerminal: (descriptor: Int32, settings: termios)?

/// Calls nothing but what signal-safety(7) allows.
private func restoreTerminal() {
  guard var terminal = unsafe silencedTerminal else { return }
  unsafe tcsetattr(terminal.descriptor, TCSAFLUSH, &terminal.settings)
}

private func restoreAndDie(_ number: Int32) {
  restoreTerminal()
  signal(number, SIG_DFL)
  raise(number)
}
