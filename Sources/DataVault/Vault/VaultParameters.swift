package import FileLayer
internal import Glibc
package import VaultCrypto

/// The dependencies of a vault: costs, randomness, clocks.
package struct VaultParameters: Sendable {
  /// The PBKDF2 iterations of a newly written password slot.
  ///
  /// joserfc refuses more than the default.
  package var iterationCount = 300_000
  /// The minimum accepted number of iterations: OWASP's figure for HMAC-SHA-512.
  ///
  /// Tests lower it.
  package var minimumIterationCount = 220_000
  /// The maximum accepted number of iterations: opening a file must not take minutes.
  package static let maximumIterationCount = 10_000_000

  /// The maximum total size of all names and values in bytes; tests lower it.
  package var maximumTotalByteCount = VaultItem.maximumTotalByteCount

  /// The maximum size of the JSON text that a new item can make: the rest is for keys, anchors and
  /// settings, so that a full vault still works.
  package var maximumItemTextByteCount = 31 << 20

  /// The policy of a vault that is created without one; tests use a weaker one.
  package var newPolicy = VaultPolicy()

  /// The time that a lock on request waits for the dependents.
  ///
  /// Tests wait longer, because they slow each other down.
  package var closingTimeout = Duration.seconds(5)

  package var random = RandomSource.system
  package var now: @Sendable () -> UnixTime = {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return UnixTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
  /// Waits for a duration, or until its task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// The keyring that keeps sessions.
  package var sessionKeyring: any SessionKeyring = KernelKeyring()
  /// The keyring that keeps the sessions that this process has received by a socket.
  package var processKeyring = ProcessKeyring.shared
  /// The time limit of a connection to a session socket.
  ///
  /// Tests wait longer, because they slow each other down.
  package var socketTimeLimit = Duration.seconds(2)
  /// The time since boot, including sleep, for the lifetime of sessions and the lock timeout.
  package var sinceBoot: @Sendable () -> Duration = { SystemTimeSource.sinceBoot }

  package init() {}
}

extension UnixTime {
  /// Whole seconds since 1970, never negative.
  var wholeSeconds: Int { max(0, Int(nanoseconds / 1_000_000_000)) }
}
