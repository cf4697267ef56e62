internal import DataVault
internal import Logging
internal import Synchronization

/// What an engine and the vault it was started on have to do with each other.
///
/// It is there before the engine is: a vault that is locked in the middle of a start ends that too.
final class VaultTies: Sendable {
  private let life: LifeKeeper
  private let engine = Mutex<WeakEngine?>(nil)
  private let dependency = Mutex<VaultDependency?>(nil)
  private let expiry = Mutex<Task<Void, Never>?>(nil)

  init(_ vault: Vault, _ life: LifeKeeper, stopsWhenVaultExpires: Bool) {
    self.life = life
    dependency.withLock { dependency in
      dependency = vault.addDependent { [weak self] in await self?.shutOut() }
    }
    guard stopsWhenVaultExpires else { return }
    let events = vault.lockEvents
    let task = Task.detached { [weak self] in
      for await event in events where [.timeout, .session].contains(event.reason) {
        await self?.shutOut()
      }
    }
    expiry.withLock { $0 = task }
  }

  /// Says which engine has come of the start.
  func tie(_ engine: MessagingEngine) {
    self.engine.withLock { $0 = WeakEngine(engine: engine) }
  }

  /// Ends the engine, or the start of it; returns when its database is closed.
  private func shutOut() async {
    let engine = engine.withLock { $0?.engine }
    if life.handle(.shutOut(.vaultLocked)) == .closeDown, let engine {
      // What a stop would have thrown stands in the log.
      do throws(EngineError) {
        try await engine.closeDown()
      } catch {
        engine.configuration.logger.warning("locking: \(error)")
      }
    } else {
      await life.awaitEnd()
    }
  }

  deinit {
    expiry.withLock { $0 }?.cancel()
  }
}

private struct WeakEngine: Sendable {
  weak let engine: MessagingEngine?
}
