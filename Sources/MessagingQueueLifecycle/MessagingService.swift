public import DataVault
public import MessagingQueue
public import ServiceLifecycle
internal import Synchronization
public import VaultedDatabase

/// A message engine as a service of a `ServiceGroup`: it runs until the group shuts down, and is
/// stopped in good order then.
///
/// Put it before the services that use it: a group shuts down from the last to the first.
///
///     let messages = MessagingService(home, configuration: configuration)
///     let worker = Worker(messages)   // its run() begins with: try await messages.engine()
///     try await ServiceGroup(
///       services: [messages, worker], gracefulShutdownSignals: [.sigterm], logger: logger
///     ).run()
///
/// With an ``EngineConfiguration/unlockTimeout`` it waits for somebody to unlock the vault, also again
/// when the vault has been locked while it ran.
public final class MessagingService: Service {
  private let home: DataVaultHome
  private let vault: Vault?
  private let configuration: EngineConfiguration
  private let place = EngineHolder()

  /// Starts nothing yet; the parameters are those of `MessagingEngine.start`.
  public init(
    _ home: DataVaultHome, vault: Vault? = nil,
    configuration: EngineConfiguration = EngineConfiguration()
  ) {
    self.home = home
    self.vault = vault
    self.configuration = configuration
  }

  /// Where in its life the engine is.
  public var state: EngineState { place.state }

  /// The engine, if it runs at this moment; for whoever would rather be told than wait.
  public var runningEngine: MessagingEngine? { place.runningEngine }

  /// The engine, as soon as it runs.
  ///
  /// Ask again when a call of an engine has thrown `vaultLocked`: the service may be waiting for the next unlock.
  /// Thrown by this one it is final, and the group has been cancelled.
  ///
  /// - Throws: why there will be none: what starting it has thrown, or `stopped`; `cancelled`.
  public func engine() async throws(EngineError) -> MessagingEngine {
    try await place.engine()
  }

  /// Runs the engine until the graceful shutdown of its group, or until the task is cancelled.
  ///
  /// - Throws: what `MessagingEngine.start` throws; `vaultLocked` when the vault was locked and no
  ///   ``EngineConfiguration/unlockTimeout`` says to wait for the next unlock; what `stop()` throws.
  public func run() async throws {
    do throws(EngineError) {
      repeat {
        guard let engine = try await start() else { break }
        try await serve(engine)
      } while !isShuttingDown
      place.end(nil)
    } catch {
      place.end(error)
      throw error
    }
  }

  /// - Returns: nil when the shutdown came first.
  private func start() async throws(EngineError) -> MessagingEngine? {
    while !isShuttingDown {
      if let engine = try await startUnlessLocked() { return engine }
      guard configuration.unlockTimeout > .zero else { throw Self.locked }
      // What ends with a vault is closed before the vault is wiped; after that the start waits for an unlock.
      try? await Task.sleep(for: .milliseconds(20))
    }
    return nil
  }

  /// - Returns: nil when the vault was locked in the middle, or the shutdown came first.
  private func startUnlessLocked() async throws(EngineError) -> MessagingEngine? {
    let life = EngineStateStore(logger: configuration.logger)
    place.begin(life)
    let (home, vault, configuration) = (home, vault, configuration)
    let result = await cancelWhenGracefulShutdown {
      () async -> Result<MessagingEngine?, EngineError> in
      do throws(EngineError) {
        return .success(
          try await MessagingEngine.startUnlessLocked(
            home, vault: vault, configuration: configuration, life: life))
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let engine): return engine
    case .failure(let error):
      if isShuttingDown, error.code == .vaultLocked { return nil }
      throw error
    }
  }

  /// Hands the engine out until it ends or is to end.
  private func serve(_ engine: MessagingEngine) async throws(EngineError) {
    place.run(engine)
    var isLockedOut = false
    for await state in engine.states.cancelOnGracefulShutdown() {
      if case .refused = state {
        isLockedOut = true
        break
      }
      if state == .stopped { break }
    }
    // Also one that somebody else has ended: its database is closed when this returns.
    try await engine.stop()
    if isLockedOut, !isShuttingDown, configuration.unlockTimeout <= .zero { throw Self.locked }
  }

  private static let locked = EngineError(
    .vaultLocked, "the messaging vault was locked",
    hint: "set an unlockTimeout to go on with the next unlock")

  private var isShuttingDown: Bool { Task.isShuttingDownGracefully || Task.isCancelled }
}
