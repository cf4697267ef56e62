internal import DataVault
internal import Logging
internal import Synchronization

/// Ends an engine when its vault is locked.
///
/// It exists before the engine, so that a lock during a start ends the start too.
final class VaultLockObserver: Sendable {
  private struct Parts {
    weak var engine: MessagingEngine?
    var dependency: VaultDependency?
    /// Waits for the vault to expire.
    var expiry: Task<Void, Never>?
  }

  private let stateStore: EngineStateStore
  private let parts = Mutex(Parts())

  init(_ vault: Vault, _ stateStore: EngineStateStore, stopsWhenVaultExpires: Bool) {
    self.stateStore = stateStore
    let dependency = vault.addDependent { [weak self] in await self?.forcedStop() }
    parts.withLock { $0.dependency = dependency }
    guard stopsWhenVaultExpires else { return }
    let events = vault.lockEvents
    let task = Task.detached { [weak self] in
      for await event in events where [.timeout, .session].contains(event.reason) {
        await self?.forcedStop()
      }
    }
    parts.withLock { $0.expiry = task }
  }

  /// Gives the observer the engine that the start has made.
  func attach(_ engine: MessagingEngine) {
    parts.withLock { $0.engine = engine }
  }

  /// Ends the engine or its start; returns when its database is closed.
  private func forcedStop() async {
    let engine = parts.withLock { $0.engine }
    if stateStore.handle(.forcedStop(.vaultLocked)) == .closeDown, let engine {
      // Nothing catches an error here, so the log gets it.
      do throws(EngineError) {
        try await engine.closeDown()
      } catch {
        engine.configuration.logger.warning("locking: \(error)")
      }
    } else {
      await stateStore.awaitEnd()
    }
  }

  deinit {
    parts.withLock { $0.expiry }?.cancel()
  }
}
