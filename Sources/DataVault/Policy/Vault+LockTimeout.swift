extension Vault {
  /// Lets the lock timeout of the unlocked vault count anew from now; without one it does nothing.
  ///
  /// - Throws: `locked`, also when the time is over.
  public func resetLockTimeout() throws(VaultError) {
    guard !isLocked else { throw .locked(id) }
    timeout?.restart(at: parameters.sinceBoot())
    scheduleExpiry()
  }

  /// Locks a vault whose time is over.
  func expireIfDue() {
    if let timeout, timeout.isOver(at: parameters.sinceBoot()) { close(because: .timeout) }
  }

  /// Sees to it that the vault locks itself also when nobody calls.
  func scheduleExpiry() {
    expiry.set(nil)
    guard let deadline = timeout?.deadline else { return }
    let (sinceBoot, sleep) = (parameters.sinceBoot, parameters.sleep)
    expiry.set(
      Task { [weak self] in
        // In slices: what sleeps beneath stands still while the machine is asleep, the boot clock
        // does not.
        while case let rest = deadline - sinceBoot(), rest > .zero {
          do { try await sleep(min(rest, .seconds(10))) } catch { return }
        }
        await self?.expireIfDue()
      })
  }
}
