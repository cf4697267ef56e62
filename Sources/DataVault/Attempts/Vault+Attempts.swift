internal import FileLayer

extension Vault {
  /// Runs one attempt to open the vault by a slot, alone among all objects and processes from the
  /// look at the back-off to the record of the outcome.
  ///
  /// A wrong secret is recorded durably before it is answered. A right one clears the failures;
  /// that it cannot be recorded keeps nobody out. Whatever else `body` throws, damage above all,
  /// counts for nothing.
  ///
  /// - Parameters:
  ///   - isStandard: whether the publicly known credentials are tried. That is no attempt: it
  ///     neither counts nor waits, and is refused at once where the vault says it is secured.
  ///   - body: tries the secret on the file as it is now.
  /// - Throws: `tooManyAttempts`, `wiped`, `busy`, `fileSizeLimit`; `writeFailed` for a wrong secret that
  ///   cannot be recorded;
  ///   what `body` and reading throw.
  func attempt<R: ~Copyable>(
    isStandard: Bool, _ body: (VaultFile) throws(VaultError) -> R
  ) throws(VaultError) -> R {
    if isStandard {
      let file = try readFile()
      guard !file.clear.isSecured else { throw .wrongPassword(id) }
      return try body(file)
    }
    let lock = try AttemptLock(of: id, in: store)
    defer { lock.release() }
    let file = try readFile()
    var record = attemptRecord()
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

  /// What is recorded; a record that cannot be read, or is none, counts as none: it must not keep
  /// the owner out, and whoever can damage it could as well remove it.
  func attemptRecord() -> AttemptRecord {
    guard let bytes = try? store.readAttempts(id),
      let record = try? AttemptRecord(parsing: bytes)
    else { return AttemptRecord() }
    return record
  }

  private func requireNoWait(
    _ record: inout AttemptRecord, _ lock: borrowing AttemptLock
  ) throws(VaultError) {
    let now = parameters.now()
    let recorded = record
    record.limitWait(at: now)
    let wait = record.wait(at: now)
    guard wait > .zero else { return }
    if record != recorded {
      // A moment that is brought nearer but not kept would be as far away at the next attempt. If
      // it cannot be kept, nobody waits for it.
      do throws(VaultError) {
        if let obstacle = lock.obstacle { throw obstacle }
        try store.writeAttempts(record.bytes, for: id, durably: true)
      } catch {
        return
      }
    }
    throw .tooManyAttempts(id, wait: wait, failureCount: record.failureCount)
  }

  private func recordSuccess(after record: AttemptRecord, _ lock: borrowing AttemptLock) {
    guard lock.obstacle == nil else { return }
    let opened = AttemptRecord.opened(at: parameters.now())
    // Without failures to clear, a power cut may take the moment: it is not worth an fsync.
    try? store.writeAttempts(opened.bytes, for: id, durably: record.failureCount > 0)
  }

  /// Counts a wrong attempt on a vault, and deletes it where its policy demands that.
  ///
  /// While the vault's own lock is held: during a derivation another vault may have taken its place,
  /// with a record and a policy of its own.
  ///
  /// - Parameter tried: the file that the secret was tried on.
  private func recordFailure(
    on tried: VaultFile, _ lock: borrowing AttemptLock
  ) throws(VaultError) {
    let vaultLock: VaultStoreLock
    do throws(VaultError) {
      if let obstacle = lock.obstacle { throw obstacle }
      vaultLock = try store.lock(id)
    } catch {
      throw .unrecordedAttempt(id, error)
    }
    defer { vaultLock.release() }
    let bytes: [UInt8]?
    do throws(VaultError) {
      bytes = try store.read(id)
      guard bytes != nil else { return }
    } catch {
      // A keyring that somebody has locked meanwhile: the vault is still there, and the answer is no.
      bytes = nil
    }
    var record = attemptRecord()
    record.recordFailure(at: parameters.now())
    do throws(VaultError) {
      try store.writeAttempts(record.bytes, for: id, durably: true)
    } catch {
      throw .unrecordedAttempt(id, error)
    }
    guard let bytes else { return }
    let file = try parse(bytes)
    let retryLimit = file.clear.retryLimit
    // By other slots the secret may be right.
    guard file.key == tried.key, retryLimit > 0, record.failureCount > retryLimit else { return }
    try store.remove(id)
    endSession()
    close(because: .wiped)
    throw .wiped(id, failureCount: record.failureCount)
  }
}

/// The right to make an attempt, or why it was not to be had.
///
/// A directory or a file system that cannot be written must not keep the owner out of a vault that
/// can be read: the attempt goes on, and only its failure is not answered. A limit of this process
/// keeps nobody else out, and ends it.
private struct AttemptLock: ~Copyable {
  let obstacle: VaultError?
  private let lock: VaultStoreLock?

  /// - Throws: `busy`, `fileSizeLimit`: whoever holds the lock makes attempts that count, and so must this one.
  init(of id: VaultID, in store: any VaultStore) throws(VaultError) {
    do throws(VaultError) {
      lock = try store.lockAttempts(id)
      obstacle = nil
    } catch {
      guard error.code != .busy, error.code != .fileSizeLimit else { throw error }
      lock = nil
      obstacle = error
    }
  }

  borrowing func release() {
    lock?.release()
  }
}

/// The record of attempts by itself, for a fuzzer.
@_spi(Testing)
public enum AttemptProbe {
  /// What a vault makes of a record that it reads.
  public struct Reading: Sendable, Equatable {
    /// The record as it would be written again.
    public let written: [UInt8]
    /// How long no attempt is taken, once a moment that is too far ahead has been brought near.
    public let wait: Duration
    /// The record after one more wrong attempt.
    public let afterFailure: [UInt8]
    /// How long no attempt is taken after that.
    public let waitAfterFailure: Duration
  }

  /// Reads a record at a moment; nil for what breaks a rule, which counts as no record.
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
