internal import FileLayer

extension Vault {
  /// Runs one attempt to open the vault by a slot.
  ///
  /// The attempt holds the attempt lock from the check of the delay until its outcome is recorded.
  /// Attempts of all objects and processes therefore run one after another.
  ///
  /// A failed attempt is recorded durably before its error is thrown. A successful attempt clears
  /// the failures, and opens the vault even if the success cannot be recorded. Any other error of
  /// `body`, damage above all, does not count as an attempt.
  ///
  /// - Parameters:
  ///   - isStandard: whether the caller tries the standard credentials, which are public. Such a
  ///     try is not an attempt: it is neither counted nor delayed. A vault that says it is secured
  ///     refuses it without a derivation.
  ///   - body: tries the secret on the current file.
  /// - Throws: `tooManyAttempts`, `deletedByRetryLimit`, `busy`, `fileSizeLimit`, `openFileLimit`; `writeFailed`
  ///   for a failed attempt that cannot be recorded; the errors of `body` and of reading.
  func attempt<R: ~Copyable>(
    isStandard: Bool, _ body: (VaultFile) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    if isStandard {
      let file = try readFile()
      guard !file.clear.isSecured else { throw .wrongPassword(id) }
      return try body(file)
    }
    let lock = try lockAttempts()
    defer { try? lock.get().release() }
    let file = try readFile()
    var record = try readAttemptRecord()
    try requireNoWait(&record, lock)
    do throws(VaultError) {
      let result = try body(file)
      recordSuccess(after: record, lock)
      return result
    } catch {
      guard error.code == .wrongPassword else { throw error }
      try recordFailure(on: file, lock)
      throw error
    }
  }

  /// Takes the lock of attempts, or returns the reason why it could not be taken.
  ///
  /// A read-only directory or file system must not lock the owner out of a readable vault. The
  /// attempt continues without the lock, and only a failure is reported as an error of recording. A
  /// limit of this process concerns this process alone, so it ends the attempt: an attacker who sets
  /// the limit could otherwise guess without being counted.
  ///
  /// - Throws: `busy`, because the holder of the lock makes attempts that count, and so must this
  ///   one; `fileSizeLimit`, `openFileLimit`.
  private func lockAttempts() throws(VaultError) -> AttemptLock {
    let lock = AttemptLock { () throws(VaultError) in try store.lockAttempts(id) }
    if case .failure(let obstacle) = lock, obstacle.code == .busy || obstacle.isOwnLimit {
      throw obstacle
    }
    return lock
  }

  /// The stored record, or an empty one if it is missing, unreadable or invalid.
  ///
  /// A damaged record must not lock the owner out. An attacker who can damage the record can also
  /// remove it.
  func attemptRecord() -> AttemptRecord {
    (try? readAttemptRecord()) ?? AttemptRecord()
  }

  /// As ``attemptRecord()``, but a record that this process's own limits keep it from reading counts as one
  /// that can hold a wait.
  private func readAttemptRecord() throws(VaultError) -> AttemptRecord {
    let bytes: [UInt8]?
    do throws(VaultError) {
      bytes = try store.readAttempts(id)
    } catch {
      if error.isOwnLimit { throw error }
      return AttemptRecord()
    }
    return bytes.flatMap { try? AttemptRecord(parsing: $0) } ?? AttemptRecord()
  }

  private func requireNoWait(
    _ record: inout AttemptRecord, _ lock: AttemptLock
  ) throws(VaultError) {
    let now = parameters.now()
    let recorded = record
    record.limitWait(at: now)
    let wait = record.wait(at: now)
    guard wait > .zero else { return }
    if record != recorded {
      // If the limited time were not stored, the next attempt would find the far time again. If it
      // cannot be stored, the vault does not enforce the delay.
      do throws(VaultError) {
        _ = try lock.get()
        try store.writeAttempts(record.bytes, for: id, durably: true)
      } catch {
        return
      }
    }
    throw .tooManyAttempts(id, wait: wait, failureCount: record.failureCount)
  }

  private func recordSuccess(after record: AttemptRecord, _ lock: AttemptLock) {
    guard case .success = lock else { return }
    let opened = AttemptRecord.opened(at: parameters.now())
    // Without failures to clear, a power cut can lose the time of opening: it is not worth an
    // fsync.
    try? store.writeAttempts(opened.bytes, for: id, durably: record.failureCount > 0)
  }

  /// Counts a failed attempt on a vault, and deletes the vault if its policy demands that.
  ///
  /// It holds the vault's own lock: during a derivation another vault can have replaced this one,
  /// with its own record and policy.
  ///
  /// - Parameter tried: the file on which the secret was tried.
  private func recordFailure(
    on tried: VaultFile, _ lock: AttemptLock
  ) throws(VaultError) {
    let vaultLock = try converting({ .unrecordedAttempt(id, $0) }) { () throws(VaultError) in
      try lock.get().returnReserve()
      return try store.lock(id)
    }
    defer { vaultLock.release() }
    let bytes: [UInt8]?
    do throws(VaultError) {
      bytes = try store.read(id)
      guard bytes != nil else { return }
    } catch {
      // Somebody locked the keyring during the attempt: the vault still exists, and the secret is
      // wrong.
      bytes = nil
    }
    let record = try converting({ .unrecordedAttempt(id, $0) }) { () throws(VaultError) in
      var record = try readAttemptRecord()
      record.recordFailure(at: parameters.now())
      try store.writeAttempts(record.bytes, for: id, durably: true)
      return record
    }
    guard let bytes else { return }
    let file = try parse(bytes)
    let retryLimit = file.clear.retryLimit
    // If the slots changed, the secret can be right for the new ones.
    guard file.key == tried.key, retryLimit > 0, record.failureCount > retryLimit else { return }
    try store.remove(id)
    store.endSession(of: id, parameters: parameters)
    close(because: .deletedByRetryLimit)
    throw .deletedByRetryLimit(id, failureCount: record.failureCount)
  }
}

/// The lock that an attempt holds, or the reason why it could not be taken.
private typealias AttemptLock = Result<VaultStoreLock, VaultError>

/// Access to the record of attempts alone, for a fuzzer.
@_spi(Testing)
public enum AttemptProbe {
  /// The result of reading a record.
  public struct Reading: Sendable, Equatable {
    /// The record as it is written again.
    public let written: [UInt8]
    /// The delay after a retry time that is too far ahead has been limited.
    public let wait: Duration
    /// The record after one more failed attempt.
    public let afterFailure: [UInt8]
    /// The delay after that attempt.
    public let waitAfterFailure: Duration
  }

  /// Reads a record at a given time; nil for an invalid record, which counts as no record.
  ///
  /// - Parameter now: nanoseconds since 1970.
  public static func reading(_ file: [UInt8], now: Int64) -> Reading? {
    guard let record = try? AttemptRecord(parsing: file) else { return nil }
    let now = UnixTime(nanoseconds: now)
    var limited = record
    limited.limitWait(at: now)
    var failed = limited
    failed.recordFailure(at: now)
    return Reading(
      written: record.bytes, wait: limited.wait(at: now), afterFailure: failed.bytes,
      waitAfterFailure: failed.wait(at: now))
  }
}
