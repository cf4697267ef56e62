internal import Glibc

/// Prevents crash reports that could contain secrets.
///
/// The kernel's core file and the Swift runtime's crash report contain memory of the process:
/// messages, and OpenSSL's copies of keys.
enum CrashTraces {
  /// Disables core files and crash reports.
  ///
  /// Call it before the process reads its first secret.
  static func forbid() {
    forbidCore()
    forbidReport()
  }

  /// Disables the core file, and the program that core(5) pipes it to.
  ///
  /// The limit is 1 because a limit of 0 does not stop the kernel from piping the core to a
  /// program. See core(5).
  private static func forbidCore() {
    let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0, limit.rlim_cur > 1 || limit.rlim_max > 0 else {
      return
    }
    limit.rlim_cur = min(1, limit.rlim_max)
    unsafe setrlimit(resource, &limit)
  }

  /// Removes the crash handlers of Swift's runtime.
  ///
  /// Where `swift-backtrace` is installed, they print the registers, and 16 bytes of the memory at
  /// each address, to standard error.
  private static func forbidReport() {
    for number in [SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
      var action = sigaction()
      guard unsafe sigaction(number, nil, &action) == 0,
        action.sa_flags & SA_SIGINFO != 0
      else { continue }  // ignored, or the system's default
      signal(number, SIG_DFL)
    }
  }
}
