internal import Synchronization

/// The time at which an unlocked vault locks itself, on the boot clock.
struct LockTimeout: Sendable, Equatable {
  /// The time of the unlock or of the last extension.
  private var start: Duration
  /// Zero for no timeout.
  private var length: Duration

  init(_ policy: VaultPolicy, start: Duration) {
    self.start = start
    length = .seconds(policy.lockTimeoutSeconds)
  }

  /// The time since boot at which the timeout expires; nil for never.
  var deadline: Duration? {
    length > .zero ? start + length : nil
  }

  func hasExpired(at now: Duration) -> Bool {
    deadline.map { now >= $0 } ?? false
  }

  /// Restarts the timeout.
  mutating func restart(at now: Duration) {
    start = now
  }

  /// Applies a policy: a changed length restarts the timeout.
  mutating func follow(_ policy: VaultPolicy, at now: Duration) {
    let next = LockTimeout(policy, start: now)
    if next.length != length { self = next }
  }
}

extension Vault {
  /// Restarts the lock timeout of the unlocked vault; without a timeout it does nothing.
  ///
  /// - Throws: `locked`, also after the timeout has expired.
  public func resetLockTimeout() throws(VaultError) {
    guard !isLocked else { throw .locked(id) }
    timeout?.restart(at: parameters.sinceBoot())
    scheduleExpiry()
  }

  /// Locks the vault if its timeout has expired.
  func expireIfDue() {
    if let timeout, timeout.hasExpired(at: parameters.sinceBoot()) { close(because: .timeout) }
  }

  /// Starts a task that locks the vault when the timeout expires, without any call.
  func scheduleExpiry() {
    expiry.set(nil)
    guard let deadline = timeout?.deadline else { return }
    let (sinceBoot, sleep) = (parameters.sinceBoot, parameters.sleep)
    expiry.set(
      Task { [weak self] in
        // In slices: the sleep's clock stops while the machine is asleep, and the boot clock does
        // not.
        while case let rest = deadline - sinceBoot(), rest > .zero {
          do { try await sleep(min(rest, .seconds(10))) } catch { return }
        }
        await self?.expireIfDue()
      })
  }
}

/// The task that waits for a vault's lock timeout; it is cancelled when the vault is released.
final class ExpiryTask: Sendable {
  private let task = Mutex<Task<Void, Never>?>(nil)

  /// Replaces the task and cancels the previous one.
  func set(_ next: Task<Void, Never>?) {
    let previous = task.withLock { task in
      defer { task = next }
      return task
    }
    previous?.cancel()
  }

  deinit {
    set(nil)
  }
}

/// The event that an unlocked vault was locked, with the reason.
public struct VaultLockEvent: Sendable, Equatable {
  /// Why a vault was locked; later versions can add reasons.
  public struct Reason: Sendable, Hashable, CustomStringConvertible {
    /// The reason's name, stable for programs.
    public let description: String

    init(_ name: String) {
      description = name
    }

    /// The caller used `lock()`.
    public static let request = Reason("request")
    /// The lock timeout of the vault's policy expired.
    public static let timeout = Reason("timeout")
    /// The session that opened the vault expired or was ended.
    public static let session = Reason("session")
    /// Another process or object gave the vault new keys, so the keys in memory no longer fit.
    public static let newKeys = Reason("newKeys")
    /// Another process or object deleted the vault.
    public static let deleted = Reason("deleted")
    /// The vault was deleted after too many failed attempts.
    public static let deletedByRetryLimit = Reason("deletedByRetryLimit")
  }

  /// The reason.
  public let reason: Reason
}

/// The streams that receive the lock events of a vault.
final class LockObservers: Sendable {
  private let continuations = Registrations<AsyncStream<VaultLockEvent>.Continuation>()

  /// A stream of the events from now on; it ends when the vault object is released.
  func events() -> AsyncStream<VaultLockEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: VaultLockEvent.self, bufferingPolicy: .bufferingNewest(8))
    let number = continuations.add(continuation)
    continuation.onTermination = { [weak continuations] _ in continuations?.remove(number) }
    return stream
  }

  func notify(_ reason: VaultLockEvent.Reason) {
    for continuation in continuations.values { continuation.yield(VaultLockEvent(reason: reason)) }
  }

  deinit {
    for continuation in continuations.values { continuation.finish() }
  }
}
