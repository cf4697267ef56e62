package import FileLayer
internal import Glibc
package import VaultCrypto

/// What a vault is handed from outside: costs, randomness, the clock.
package struct VaultParameters: Sendable {
  /// PBKDF2 iterations of a password slot that is written.
  ///
  /// joserfc refuses more than the default.
  package var iterationCount = 300_000
  /// The fewest iterations that are accepted: OWASP's figure for HMAC-SHA-512.
  ///
  /// Tests lower it.
  package var minimumIterationCount = 220_000
  /// The most iterations that are accepted: a file must not cost minutes.
  package static let maximumIterationCount = 10_000_000

  /// The most that all names and values may have together; tests lower it.
  package var maximumTotalByteCount = VaultItem.maximumTotalByteCount

  /// The policy of a vault that is made without one; tests ask less of their passwords.
  package var newPolicy = VaultPolicy()

  /// How long a locking on request waits for what has been opened from the vault; tests, which starve each
  /// other, wait longer.
  package var lockPatience = Duration.seconds(5)

  package var random = RandomSource.system
  package var now: @Sendable () -> UnixTime
  /// Waits so long, or until its task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// Where sessions are kept.
  package var sessionKeyring: any SessionKeyring = KernelKeyring()
  /// Time since boot, sleep included: how long sessions last, and until a vault locks itself.
  package var sinceBoot: @Sendable () -> Duration = { SystemTimeSource.sinceBoot }

  package init(
    now: @escaping @Sendable () -> UnixTime = {
      var time = timespec()
      unsafe clock_gettime(CLOCK_REALTIME, &time)
      return UnixTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
  ) {
    self.now = now
  }
}

extension UnixTime {
  /// Whole seconds since 1970, never negative.
  var wholeSeconds: Int { max(0, Int(nanoseconds / 1_000_000_000)) }
}
