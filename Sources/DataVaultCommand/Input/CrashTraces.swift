internal import Glibc

/// What the system and the language's runtime would write of this process if it crashed: messages, and
/// OpenSSL's copies of keys.
enum CrashTraces {
  /// Lets nothing be written from here on; belongs before the first secret.
  static func forbid() {
    forbidCore()
    forbidReport()
  }

  /// No core file, and none for a program that takes them.
  ///
  /// To the kernel a limit of 1 means neither; 0 does not keep it from starting such a program. See core(5).
  private static func forbidCore() {
    let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0, limit.rlim_cur > 1 || limit.rlim_max > 0 else {
      return
    }
    limit.rlim_cur = min(1, limit.rlim_max)
    unsafe setrlimit(resource, &limit)
  }

  /// Swift's runtime, where its `swift-backtrace` is installed, prints the registers, and 16 bytes of
  /// memory at each, to standard error.
  private static func forbidReport() {
    for number in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
      var action = sigaction()
      guard unsafe sigaction(number, nil, &action) == 0,
        action.sa_flags & SA_SIGINFO != 0
      else { continue }  // ignored, or as the system has it
      signal(number, SIG_DFL)
    }
  }
}
