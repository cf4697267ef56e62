internal import Synchronization

/// When an unlocked vault locks itself, on the boot clock.
struct LockTimeout: Sendable, Equatable {
  /// The unlock, or the last extension.
  private var start: Duration
  /// Zero for never.
  private var length: Duration

  init(_ policy: VaultPolicy, start: Duration) {
    self.start = start
    length = .seconds(policy.lockTimeoutSeconds)
  }

  /// The moment, in time since boot; nil for never.
  var deadline: Duration? {
    length > .zero ? start + length : nil
  }

  func isOver(at now: Duration) -> Bool {
    deadline.map { now >= $0 } ?? false
  }

  /// Counts from now on.
  mutating func restart(at now: Duration) {
    start = now
  }

  /// Takes over a policy: another length counts from now on.
  mutating func follow(_ policy: VaultPolicy, at now: Duration) {
    let next = LockTimeout(policy, start: now)
    if next.length != length { self = next }
  }
}

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

/// The task that waits for a vault's lock timeout; it ends with its owner.
final class ExpiryTask: Sendable {
  private let task = Mutex<Task<Void, Never>?>(nil)

  /// Takes the place of the one before, which ends.
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

/// That an unlocked vault was locked, and why.
public struct VaultLockEvent: Sendable, Equatable {
  /// Why a vault was locked; new reasons may be added.
  public struct Reason: Sendable, Hashable, CustomStringConvertible {
    /// The reason's name, stable for programs.
    public let description: String

    init(_ name: String) {
      description = name
    }

    /// Somebody called `lock()`.
    public static let request = Reason("request")
    /// The lock timeout of the vault's policy is over.
    public static let timeout = Reason("timeout")
    /// The session through which the vault was opened is over, or was ended.
    public static let session = Reason("session")
    /// The vault has new keys, made elsewhere: what was open does not fit any more.
    public static let newKeys = Reason("newKeys")
    /// The vault has been deleted elsewhere.
    public static let deleted = Reason("deleted")
    /// The vault was deleted after too many wrong attempts.
    public static let wiped = Reason("wiped")
  }

  /// Why.
  public let reason: Reason
}

/// Who wants to know when a vault is locked.
final class LockObservers: Sendable {
  private struct State {
    var continuations: [UInt64: AsyncStream<VaultLockEvent>.Continuation] = [:]
    var nextNumber: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The events from now on; it ends with the vault.
  func events() -> AsyncStream<VaultLockEvent> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: VaultLockEvent.self, bufferingPolicy: .bufferingNewest(8))
    let number = state.withLock { state in
      state.nextNumber += 1
      state.continuations[state.nextNumber] = continuation
      return state.nextNumber
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.continuations.removeValue(forKey: number) }
    }
    return stream
  }

  func tell(_ reason: VaultLockEvent.Reason) {
    let continuations = state.withLock { Array($0.continuations.values) }
    for continuation in continuations { continuation.yield(VaultLockEvent(reason: reason)) }
  }

  deinit {
    // Outside the lock: ending a stream calls back.
    let continuations = state.withLock { state in
      defer { state.continuations = [:] }
      return Array(state.continuations.values)
    }
    for continuation in continuations { continuation.finish() }
  }
}
