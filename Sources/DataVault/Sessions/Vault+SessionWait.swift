extension Vault {
  /// Waits until a session opens the vault: until somebody runs `datavault unlock`.
  ///
  /// Looks four times a second. A stale session is ended, and waited on for another. A vault that
  /// is unlocked in another way meanwhile ends the wait as well.
  ///
  /// - Parameter timeout: how long, on the boot clock; zero looks once.
  /// - Returns: whether the vault is unlocked now. It is not when the time is over, or the task is
  ///   cancelled.
  /// - Throws: `sessionsUnavailable` where the kernel refuses, as nothing would ever come; what
  ///   reading throws.
  public nonisolated func unlockWithSession(
    waitingUpTo timeout: Duration
  ) async throws(VaultError) -> Bool {
    let start = ContinuousClock.now
    while true {
      do throws(VaultError) {
        if try await unlockWithAvailableSession() { return true }
      } catch {
        guard error.code == .sessionStale else { throw error }
      }
      let remaining = timeout - start.duration(to: .now)
      guard remaining > .zero else { return false }
      do {
        try await Task.sleep(
          for: min(SessionWatch.interval, remaining), clock: .continuous)
      } catch {
        return false
      }
    }
  }
}
