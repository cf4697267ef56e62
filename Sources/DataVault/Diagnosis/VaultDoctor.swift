internal import FileLayer
internal import VaultCrypto

/// Diagnoses this process, a store and each vault in the store.
///
/// It changes nothing, needs no password and makes no attempt. To learn whether a failed attempt
/// could be recorded, it creates a file beside the record and removes it.
public enum VaultDoctor {
  /// All findings: first about the process, then about the store, then about each vault.
  ///
  /// To check memory locking, it locks a page and looks at all secrets that this process has held.
  public static func examine(_ store: any VaultStore) async -> [VaultFinding] {
    await examine(store, parameters: VaultParameters(), canLockMemory: canLockMemory)
  }

  package static func examine(
    _ store: any VaultStore, parameters: VaultParameters, canLockMemory: () -> Bool
  ) async -> [VaultFinding] {
    var findings: [VaultFinding] = []
    if !canLockMemory() { findings.append(.memoryNotLocked) }
    do throws(VaultError) {
      try VaultSession.checkAvailability(parameters: parameters)
    } catch {
      findings.append(.sessionsUnavailable(error))
    }
    do throws(VaultError) {
      for id in try await Vault.list(in: store) {
        findings += await Vault(id: id, store: store, parameters: parameters).findings()
      }
      let retired = try await onBlockingThread("datavault.operations") {
        () throws(VaultError) in try store.retiredNames()
      }
      findings += retired.map { .retired($0) }
    } catch {
      findings.append(VaultFinding(error))
    }
    return findings
  }

  private static func canLockMemory() -> Bool {
    _ = SecretBytes(zeroCount: 1)
    return LockedMemory.isComplete
  }
}

extension Vault {
  /// The findings about this vault.
  fileprivate func findings() -> [VaultFinding] {
    let status: VaultStatus
    do throws(VaultError) {
      status = try self.status()
    } catch {
      return [VaultFinding(error, of: id)]
    }
    var findings: [VaultFinding] = []
    if !status.isSecured { findings.append(.standardPassword(id)) }
    for count in status.slots.compactMap(\.iterationCount) where count < parameters.iterationCount {
      findings.append(.oldIterations(id, count, of: parameters.iterationCount))
    }
    if let error = failure(of: store.checkLock) {
      findings.append(
        .unchangeable(id, error, and: ", and a wrong password of it is not counted"))
    } else if let error = failure(of: store.checkWriting) {
      findings.append(.unchangeable(id, error))
    }
    if status.retryDelay > .zero { findings.append(.tooManyAttempts(id, status)) }
    // The standard password, which is public, is not an attempt.
    if status.isSecured, let error = failure(of: store.checkAttemptRecordIsWritable) {
      // A process that cannot record an attempt because of its own limits makes none.
      findings.append(
        error.isOwnLimit ? VaultFinding(error, of: id) : .attemptsNotRecorded(id, error))
    }
    return findings
  }

  /// The error of a check of this vault; nil if it succeeds.
  private func failure(of check: (VaultID) throws(VaultError) -> Void) -> VaultError? {
    do throws(VaultError) { try check(id) } catch { return error }
    return nil
  }
}
