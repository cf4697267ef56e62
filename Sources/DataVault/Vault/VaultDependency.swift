internal import FileLayer
internal import Synchronization

/// The dependents of a vault: resources opened with its keys, which close before the keys are
/// wiped.
extension Vault {
  /// The time that a lock from outside waits for the dependents.
  ///
  /// A lock from outside promises to end within a second.
  static let outsideClosingTimeout = Duration.milliseconds(500)

  /// Calls `close` and waits for it whenever the vault is locked on request, while the result
  /// exists.
  ///
  /// While `close` runs, the vault refuses everything but ``storeAnchor(_:)``. A lock timeout does
  /// not call it.
  ///
  /// - Parameter close: can be called more than once.
  package nonisolated func addDependent(
    _ close: @escaping @Sendable () async -> Void
  ) -> VaultDependency {
    VaultDependency(dependents, close)
  }

  /// Refuses new work, waits up to `closingTimeout` for the dependents to close, then wipes the keys.
  func lock(because reason: VaultLockEvent.Reason, closingTimeout: Duration) async {
    refusesWork = true
    let closings = dependents.values
    if !closings.isEmpty {
      _ = await completes(within: closingTimeout) {
        await withTaskGroup { group in
          for close in closings { group.addTask { await close() } }
        }
      }
    }
    close(because: reason)
  }
}

/// Registers a dependent with a vault for as long as this object exists.
package final class VaultDependency: Sendable {
  private let dependents: Registrations<@Sendable () async -> Void>
  private let number: UInt64

  fileprivate init(
    _ dependents: Registrations<@Sendable () async -> Void>,
    _ close: @escaping @Sendable () async -> Void
  ) {
    self.dependents = dependents
    number = dependents.add(close)
  }

  deinit {
    dependents.remove(number)
  }
}

/// Values that callers of several threads add, and remove by the numbers they got.
final class Registrations<Value: Sendable>: Sendable {
  private struct State {
    var values: [UInt64: Value] = [:]
    var nextNumber: UInt64 = 0
  }

  private let state = Mutex(State())

  var values: [Value] { state.withLock { Array($0.values.values) } }

  func add(_ value: Value) -> UInt64 {
    state.withLock { state in
      state.nextNumber += 1
      state.values[state.nextNumber] = value
      return state.nextNumber
    }
  }

  func remove(_ number: UInt64) {
    // Released outside the lock: releasing the value can release another registration, which takes
    // the lock.
    let value = state.withLock { $0.values.removeValue(forKey: number) }
    withExtendedLifetime(value) {}
  }
}
