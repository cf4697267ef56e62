internal import FileLayer
internal import Synchronization

/// What has been opened with a vault's keys is closed before they are wiped.
extension Vault {
  /// How long a locking from outside, which promises to be over within a second, waits for what has been
  /// opened from the vault.
  static let outsideLockPatience = Duration.milliseconds(500)

  /// Has `close` called, and waited for, whenever the vault is locked on request; until the result
  /// goes.
  ///
  /// While it runs the vault refuses everything but ``storeAnchor(_:)``. A lock timeout calls nobody.
  ///
  /// - Parameter close: may be called more than once.
  package nonisolated func addDependent(
    _ close: @escaping @Sendable () async -> Void
  ) -> VaultDependency {
    VaultDependency(dependents, close)
  }

  /// Refuses new work, lets the dependents close within `patience`, then wipes.
  func lock(because reason: VaultLockEvent.Reason, patience: Duration) async {
    refusesWork = true
    let closings = dependents.closings
    if !closings.isEmpty {
      _ = await finishes(within: patience) {
        await withTaskGroup { group in
          for close in closings { group.addTask { await close() } }
        }
      }
    }
    close(because: reason)
  }
}

/// Ties something that was opened with a vault's keys to that vault, as long as it is there.
package final class VaultDependency: Sendable {
  private let dependents: VaultDependents
  private let number: UInt64

  fileprivate init(_ dependents: VaultDependents, _ close: @escaping @Sendable () async -> Void) {
    self.dependents = dependents
    number = dependents.add(close)
  }

  deinit {
    dependents.remove(number)
  }
}

/// The dependents of one vault.
final class VaultDependents: Sendable {
  private struct State {
    var closings: [UInt64: @Sendable () async -> Void] = [:]
    var nextNumber: UInt64 = 0
  }

  private let state = Mutex(State())

  var closings: [@Sendable () async -> Void] { state.withLock { Array($0.closings.values) } }

  func add(_ close: @escaping @Sendable () async -> Void) -> UInt64 {
    state.withLock { state in
      state.nextNumber += 1
      state.closings[state.nextNumber] = close
      return state.nextNumber
    }
  }

  func remove(_ number: UInt64) {
    // Given back outside the lock: what it holds may end with it, and another dependency in that.
    let closing = state.withLock { $0.closings.removeValue(forKey: number) }
    withExtendedLifetime(closing) {}
  }
}
