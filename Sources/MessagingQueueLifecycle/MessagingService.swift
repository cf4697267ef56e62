public import DataVault
public import MessagingQueue
public import ServiceLifecycle
internal import Synchronization
public import VaultedDatabase

/// Runs a message engine as a service of a `ServiceGroup`, and stops it when the group shuts down.
///
/// List it before the services that use it, as a group shuts down from the last to the first.
///
///     let messages = MessagingService(home, configuration: configuration)
///     let workers = WorkerService(messages, [mails, invoices])
///     try await ServiceGroup(
///       services: [messages, workers], gracefulShutdownSignals: [.sigterm], logger: logger
///     ).run()
///
/// A service of your own begins its `run()` with `try await messages.engine()`.
///
/// With an `EngineConfiguration.unlockTimeout` it waits for an unlock of the vault, also after
/// the vault was locked while it ran. It listens on a session socket of the home, so that `datavault unlock`, `lock`
/// and `status` also reach it where the kernel refuses sessions.
public final class MessagingService: Service {
  private let home: DataVaultHome
  private let vault: Vault?
  private let configuration: EngineConfiguration
  private let holder = EngineHolder()
  /// One for all engines: the service receives each unlock on it.
  private let socket: EngineSocket

  /// Makes the service without starting it; the parameters are those of `MessagingEngine.start`.
  public init(
    _ home: DataVaultHome, vault: Vault? = nil,
    configuration: EngineConfiguration = EngineConfiguration()
  ) {
    self.home = home
    self.vault = vault
    self.configuration = configuration
    socket = EngineSocket(home, configuration.logger)
  }

  /// The engine's current state.
  public var state: EngineState { holder.state }

  /// The engine if it runs now, without waiting; otherwise nil.
  public var runningEngine: MessagingEngine? { holder.runningEngine }

  /// The engine, as soon as it runs.
  ///
  /// If a call of an engine throws `vaultLocked`, call this again: the service possibly waits for
  /// the next unlock. If this call throws `vaultLocked`, that is final, and the group has been
  /// cancelled.
  ///
  /// - Throws: the error of starting the engine, `stopped`, or `cancelled`.
  public func engine() async throws(EngineError) -> MessagingEngine {
    try await holder.engine()
  }

  /// Runs the engine until its group shuts down gracefully or the task is cancelled.
  ///
  /// - Throws: the errors of `MessagingEngine.start`; `vaultLocked` if the vault was locked and
  ///   `EngineConfiguration.unlockTimeout` is zero; the errors of `stop()`.
  public func run() async throws {
    defer { socket.close() }
    do throws(EngineError) {
      repeat {
        guard let engine = try await start() else { break }
        try await serve(engine)
      } while !isShuttingDown
      holder.end(nil)
    } catch {
      holder.end(error)
      throw error
    }
  }

  /// - Returns: nil if the shutdown came first.
  private func start() async throws(EngineError) -> MessagingEngine? {
    while !isShuttingDown {
      if let engine = try await startUnlessLocked() { return engine }
      guard configuration.unlockTimeout > .zero else { throw Self.locked }
      // The engine closes before the vault is wiped; after this pause the start waits for an
      // unlock.
      try? await Task.sleep(for: .milliseconds(20))
    }
    return nil
  }

  /// - Returns: nil if the vault was locked during the start, or the shutdown came first.
  private func startUnlessLocked() async throws(EngineError) -> MessagingEngine? {
    let stateStore = EngineStateStore(logger: configuration.logger)
    holder.begin(stateStore)
    await socket.open()
    socket.report(nil)
    let (home, vault, configuration) = (home, vault, configuration)
    let result = await cancelWhenGracefulShutdown {
      () async -> Result<MessagingEngine?, EngineError> in
      do throws(EngineError) {
        return .success(
          try await MessagingEngine.startUnlessLocked(
            home, vault: vault, configuration: configuration, stateStore: stateStore))
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

  /// Hands the engine out until it ends or the group shuts down.
  private func serve(_ engine: MessagingEngine) async throws(EngineError) {
    // A first start has just made the home.
    await socket.open()
    socket.report(engine)
    holder.run(engine)
    var isLockedOut = false
    for await state in engine.states.cancelOnGracefulShutdown() {
      if case .refused = state {
        isLockedOut = true
        break
      }
      if state == .stopped { break }
    }
    // After a lock it has closed its database, and stays refused: its callers learn the reason. After another caller
    // ended it, its database is closed when this returns.
    if !isLockedOut { try await engine.stop() }
    if isLockedOut, !isShuttingDown, configuration.unlockTimeout <= .zero { throw Self.locked }
  }

  private static let locked = EngineError(
    .vaultLocked, "the messaging vault was locked",
    hint: "set an unlockTimeout to continue after the next unlock")

  private var isShuttingDown: Bool { Task.isShuttingDownGracefully || Task.isCancelled }
}
