internal import Synchronization

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
