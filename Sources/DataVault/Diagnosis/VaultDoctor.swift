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

extension VaultFinding {
  fileprivate static let memoryNotLocked = VaultFinding(
    .memoryNotLocked,
    "the system does not let this process lock memory: secrets can reach the swap",
    fix: "raise RLIMIT_MEMLOCK (`ulimit -l`, LimitMEMLOCK= of a systemd unit), or encrypt the swap")

  fileprivate static func sessionsUnavailable(_ error: VaultError) -> VaultFinding {
    VaultFinding(
      .sessionsUnavailable, error.message,
      fix: error.hint ?? "give the password to each command")
  }

  fileprivate static func standardPassword(_ id: VaultID) -> VaultFinding {
    VaultFinding(
      .standardPassword, of: id,
      "vault '\(id)' opens with the publicly known password: there is no security",
      fix: id == .messaging ? "run `datavault secure`" : "change its password")
  }

  fileprivate static func oldIterations(
    _ id: VaultID, _ count: Int, of today: Int
  ) -> VaultFinding {
    VaultFinding(
      .oldIterations, of: id,
      "the password of vault '\(id)' is derived with \(count) iterations; new ones use \(today)",
      fix: "unlock it once with its password, which raises the number")
  }

  fileprivate static func tooManyAttempts(_ id: VaultID, _ status: VaultStatus) -> VaultFinding {
    let seconds = max(1, status.retryDelay.components.seconds)
    return VaultFinding(
      .tooManyAttempts, of: id,
      "vault '\(id)' accepts no attempt for \(seconds) s after \(status.failedAttemptCount) failed attempts",
      fix: "wait; if the attempts were not yours, find out whose they were")
  }

  fileprivate static func attemptsNotRecorded(
    _ id: VaultID, _ error: VaultError
  ) -> VaultFinding {
    VaultFinding(
      .attemptsNotRecorded, of: id,
      "failed attempts on vault '\(id)' are not counted or delayed because they cannot be recorded: \(error.message)",
      fix: error.hint ?? "make the directory of the vaults writable for this user")
  }

  fileprivate static func unchangeable(
    _ id: VaultID, _ error: VaultError, and consequence: String = ""
  ) -> VaultFinding {
    VaultFinding(
      VaultError(
        error.code, "vault '\(id)' cannot be changed\(consequence): \(error.message)",
        hint: error.hint, underlying: error),
      of: id)
  }

  fileprivate static func retired(_ name: String) -> VaultFinding {
    VaultFinding(
      .retiredVault, "the store holds a retired vault: \(name)",
      fix: "delete it if you no longer need it; to open it, give it back its old name")
  }
}

/// A problem of a vault, its store or this process, with its fix.
public struct VaultFinding: Sendable, Equatable {
  /// The kinds of findings; later versions can add kinds.
  public struct Kind: Sendable, Hashable, CustomStringConvertible {
    /// The kind's name, stable for programs.
    public let description: String

    init(_ name: String) {
      description = name
    }

    /// The standard credentials, which are public, open the vault.
    public static let standardPassword = Kind("standardPassword")
    /// A password slot has fewer iterations than a new one would get.
    public static let oldIterations = Kind("oldIterations")
    /// The vault accepts no attempt for now, after failed attempts.
    public static let tooManyAttempts = Kind("tooManyAttempts")
    /// Failed attempts to open a vault cannot be recorded, and are not counted.
    ///
    /// Reasons are a full disk, a directory that this user cannot write, a read-only file system.
    public static let attemptsNotRecorded = Kind("attemptsNotRecorded")
    /// This process cannot write files, and therefore cannot try to open a vault.
    public static let fileSizeLimit = Kind("fileSizeLimit")
    /// This process can open no more files, and so cannot try to open a vault.
    public static let openFileLimit = Kind("openFileLimit")
    /// The lock file of a vault does not belong to this user alone: the vault cannot be changed.
    public static let foreignFile = Kind("foreignFile")
    /// The vault cannot be changed: its lock file cannot be used, or a directory is in the place of
    /// the temporary file of a write.
    public static let writeFailed = Kind("writeFailed")
    /// A vault was moved aside under another name.
    public static let retiredVault = Kind("retiredVault")
    /// The system refuses to keep this process's secrets out of the swap.
    public static let memoryNotLocked = Kind("memoryNotLocked")
    /// The kernel cannot keep sessions for this process.
    public static let sessionsUnavailable = Kind("sessionsUnavailable")
    /// The store cannot be reached: no session bus, no service on it, or no collection.
    ///
    /// Each case has its own message and fix.
    public static let storeUnavailable = Kind("storeUnavailable")
    /// The store is locked.
    public static let storeLocked = Kind("storeLocked")
    /// Other users can read or write a vault or the directory of the vaults.
    public static let permissionsTooOpen = Kind("permissionsTooOpen")
    /// A vault might exist, but cannot be read.
    public static let unreadable = Kind("unreadable")
    /// A vault's bytes are not the bytes that were written.
    public static let damaged = Kind("damaged")
    /// A later version of this software wrote a vault.
    public static let newerVersion = Kind("newerVersion")
  }

  /// The kind of problem.
  public let kind: Kind

  /// The vault concerned; nil for the store and the process.
  public let vaultID: VaultID?

  /// The error with which using the vault or the store would fail; nil if it works.
  public let error: VaultError.Code?

  /// The description of the problem, for people.
  public let message: String

  /// The next step for the user.
  public let fix: String

  init(_ kind: Kind, of id: VaultID? = nil, _ message: String, fix: String) {
    self.kind = kind
    vaultID = id
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultError, of id: VaultID? = nil) {
    kind = Kind(error.code.description)
    vaultID = id
    self.error = error.code
    message = error.message
    fix = error.hint ?? Self.fixes[error.code] ?? "see the message"
  }

  private static let fixes: [VaultError.Code: String] = [
    .damaged: "restore the vault from a backup",
    .newerVersion: "use the version of this software that wrote it",
    .unreadable: "let this user read it: check the owner and mode of its file and directories",
    .storeUnavailable: "start the service that keeps the vaults, or keep them in files",
    .storeLocked: "unlock the service that keeps the vaults",
  ]
}
