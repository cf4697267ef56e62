public import DataVault
internal import FileLayer
internal import GRDB
internal import Logging
internal import SealedSQLite
internal import Synchronization
public import SystemPackage
public import VaultedDatabase

extension MessagingEngine {
  /// Starts an engine on the messages of a home.
  ///
  /// An unlocked vault gives the key. Without one, a first start makes the vault and the database
  /// with the publicly known standard credentials. A start opens an unsecured vault with the same
  /// credentials. The log warns of both; ``EngineConfiguration/requiresSecuredVault`` refuses both.
  ///
  /// The start opens a secured vault through its session, which `datavault unlock` begins, and
  /// never tries the standard credentials on it. If a live session names a vault that is missing,
  /// the start does not make it again.
  ///
  /// The engine ends when `datavault lock` ends that session or `Vault.lock()` locks the vault. It
  /// continues when a session or a lock timeout expires.
  ///
  /// - Parameters:
  ///   - home: the directory of the vault and the database.
  ///   - vault: the messaging vault of that home, unlocked. If it is locked or nil, the engine
  ///     tries the session or the standard credentials.
  ///   - configuration: its ``EngineConfiguration/unlockTimeout`` says how long to wait for a
  ///     session. If it is not zero, the engine listens on a session socket of the home.
  /// - Throws: `vaultLocked`; `keyMissing`, `vaultMissing`, `notSecured`, `databaseMissing`,
  ///   `databaseMismatch`, `plainDatabase`; `rolledBack`, which ``acceptRollback(_:vault:)``
  ///   resolves; `damaged`, `newerVersion`; `busy`, `diskFull`, `inputOutput`, `vault`.
  public static func start(
    _ home: DataVaultHome, vault: Vault? = nil,
    configuration: EngineConfiguration = EngineConfiguration()
  ) async throws(EngineError) -> MessagingEngine {
    // An engine that does not wait for an unlock needs no way to receive one.
    let socket = EngineSocket(home, configuration.logger)
    let waits = configuration.unlockTimeout > .zero
    do throws(EngineError) {
      if waits { await socket.open() }
      let engine = try await startUnlessLocked(
        home, vault: vault, configuration: configuration,
        stateStore: EngineStateStore(logger: configuration.logger))
      guard let engine else { throw EngineError(.locked, home) }
      if waits {
        // A first start has just made the home.
        await socket.open()
        socket.report(engine)
        engine.socket.withLock { $0 = socket }
      }
      return engine
    } catch {
      socket.close()
      throw error
    }
  }

  /// Starts an engine, unless its vault is locked during the start.
  ///
  /// - Parameter stateStore: shows the start from its beginning.
  /// - Returns: nil if the vault was locked; this call does not wait for an unlock.
  package static func startUnlessLocked(
    _ home: DataVaultHome, vault: Vault?, configuration: EngineConfiguration,
    stateStore: EngineStateStore
  ) async throws(EngineError) -> MessagingEngine? {
    _ = stateStore.handle(.start)
    let engine: MessagingEngine
    var wasUnlocked = false
    do throws(EngineError) {
      let vault = try await startingVault(home, given: vault, configuration: configuration)
      wasUnlocked = true
      engine = try await open(
        home, vault: vault, configuration: configuration, stateStore: stateStore)
    } catch {
      _ = stateStore.handle(.failed(error.code))
      if wasUnlocked, error.code == .vaultLocked { return nil }
      throw error
    }
    if stateStore.handle(.opened) == .closeDown {
      try await engine.closeDown()
      if stateStore.refusal == .vaultLocked { return nil }
      throw .notRunning(stateStore.refusal ?? .stopped)
    }
    return engine
  }

  /// Opens the engine; a full disk gives its reserve back.
  private static func open(
    _ home: DataVaultHome, vault: Vault, configuration: EngineConfiguration,
    stateStore: EngineStateStore
  ) async throws(EngineError) -> MessagingEngine {
    let reserve = DiskReserve(
      besideDatabase: home.databasePath, byteCount: configuration.reserveByteCount,
      in: home.fileSystem)
    do throws(EngineError) {
      return try await open(
        home, vault: vault, configuration: configuration, stateStore: stateStore, reserve)
    } catch {
      guard error.code == .diskFull, reserve.release() else { throw error }
      configuration.warnOfReleasedReserve()
      return try await open(
        home, vault: vault, configuration: configuration, stateStore: stateStore, reserve)
    }
  }

  private static func open(
    _ home: DataVaultHome, vault: Vault, configuration: EngineConfiguration,
    stateStore: EngineStateStore, _ reserve: DiskReserve
  ) async throws(EngineError) -> MessagingEngine {
    let lockObserver = VaultLockObserver(
      vault, stateStore, stopsWhenVaultExpires: configuration.stopsWhenVaultExpires)
    var databaseConfiguration = Configuration()
    databaseConfiguration.busyMode = .timeout(configuration.busyTimeout / .seconds(1))
    let database: VaultedDatabase
    let isSecured: Bool
    do {
      database = try await DatabaseCoordinator(home: home).open(
        vault, configuration: databaseConfiguration, anchorStorage: EngineAnchorStorage(),
        migrate: EngineSchema.migrateAlone)
      isSecured = try await vault.status().isSecured
    } catch {
      throw EngineError(starting: error)
    }
    do {
      let (engine, lastCommit) = try await onBlockingThread("datavault.engine-opening") {
        let engine = try MessagingEngine(
          pool: database.pool, time: SystemTimeSource(), configuration: configuration,
          isSecured: isSecured, stateStore: stateStore,
          recordAnchor: {
            try await DatabaseCoordinator(home: home).recordAnchor(
              of: vault, in: database.pool, EngineAnchorStorage())
          },
          isLockedOut: { vault.isLockedFromOutside },
          endsWithSession: { vault.endsWithSession }, reserve: reserve,
          closePool: {
            try database.close()
            withExtendedLifetime(lockObserver) {}
          })
        return (
          engine,
          try engine.access.readBlocking { try $0.number("SELECT commit_number FROM engine") }
        )
      }
      lockObserver.attach(engine)
      engine.beginMaintenance {
        let path = FilePath(home.databasePath.string + "-maintenance")
        // A lock file that root owned would keep the daemon from maintenance for good.
        try? home.fileSystem.makeLockFile(path)
        return try? home.fileSystem.lock(path, wait: false)
      }
      engine.beginObservation()
      // A killed engine and a salvage leave commits that no anchor covers.
      let anchor = try? await vault.anchor()
      if lastCommit ?? 0 > anchor?.commitNumber ?? 0 { engine.didCommit() }
      if !isSecured { configuration.warnOfNoSecurity(home) }
      configuration.warnOfMemory()
      if let damagedPath = database.finishedSalvage {
        configuration.warnOfFinishedSalvage(damagedPath: damagedPath)
      }
      if database.discardedLogFrameCount > 0 {
        configuration.warnOfDiscardedLog(home, frameCount: database.discardedLogFrameCount)
      }
      return engine
    } catch {
      try? database.close()
      throw EngineError(starting: error)
    }
  }

  /// Starts an engine on an unencrypted file, for comparisons in benchmarks and tests.
  @_spi(Testing)
  public static func start(
    unencryptedAt path: FilePath, configuration: EngineConfiguration = EngineConfiguration()
  ) async throws(EngineError) -> MessagingEngine {
    do {
      return try await onBlockingThread("datavault.engine-opening") {
        let pool = try DatabasePool(path: path.string)
        try EngineSchema.migrateAlone(pool)
        return try MessagingEngine(
          pool: pool, time: SystemTimeSource(), configuration: configuration, isSecured: false,
          closePool: { try SealedDatabase.close(pool) })
      }
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// Returns an unlocked vault, by the rules of ``StartDecision``.
  private static func startingVault(
    _ home: DataVaultHome, given: Vault?, configuration: EngineConfiguration
  ) async throws(EngineError) -> Vault {
    do {
      let action = try await startDecision(
        home, given: given, requiresSecuredVault: configuration.requiresSecuredVault
      ).action
      switch (action, given) {
      case (.useGivenVault, let vault?):
        return vault
      case (.createStandardVault, _):
        return try await standardVault(home)
      case (.tryStandardCredentials, _), (.useGivenVault, nil):
        let vault = try await messagingVault(home, given: given)
        try await vault.unlock(with: .standard)
        return vault
      case (.trySession, _):
        let vault = try await messagingVault(home, given: given)
        guard try await isUnlockedBySession(vault, configuration) else {
          throw EngineError(.locked, home)
        }
        return vault
      case (.refuse(let refusal), _):
        throw EngineError(refusal, home)
      }
    } catch let error as VaultError where error.code == .wrongPassword {
      throw EngineError(.locked, home)
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// The error that a start would throw before it opens the messaging vault; nil if it would open it.
  ///
  /// It changes nothing and opens no vault. A vault that is only locked is no error here.
  ///
  /// - Throws: the error of the vault's store.
  package static func refusal(
    toStartIn home: DataVaultHome, requiresSecuredVault: Bool
  ) async throws(EngineError) -> EngineError? {
    do {
      let decision = try await startDecision(
        home, given: nil, requiresSecuredVault: requiresSecuredVault)
      guard case .refuse(let refusal) = decision.action else { return nil }
      return EngineError(refusal, home)
    } catch {
      throw EngineError(starting: error)
    }
  }

  private static func startDecision(
    _ home: DataVaultHome, given: Vault?, requiresSecuredVault: Bool
  ) async throws -> StartDecision {
    let stored = try await storedVault(home)
    return StartDecision(
      given: await facts(of: given), stored: stored, databaseExists: try databaseExists(home),
      sessionExists: stored == .secured ? false : try await home.liveSession(of: .messaging) != nil,
      requiresSecuredVault: requiresSecuredVault)
  }

  private static func messagingVault(
    _ home: DataVaultHome, given: Vault? = nil
  ) async throws -> Vault {
    if let given { return given }
    return try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
  }

  /// Whether a session opened the vault; only a caller that waits needs a kernel that has sessions.
  private static func isUnlockedBySession(
    _ vault: Vault, _ configuration: EngineConfiguration
  ) async throws -> Bool {
    let waits = configuration.unlockTimeout > .zero
    do throws(VaultError) {
      if try await vault.unlockWithSession() { return true }
    } catch {
      guard waits, error.code == .sessionStale else { throw error }
      configuration.logger.warning("\(error.message)")
    }
    guard waits else { return false }
    configuration.logger.notice("the messaging vault is locked: waiting for datavault unlock")
    return try await vault.unlockWithSession(waitingUpTo: configuration.unlockTimeout)
  }

  /// Makes the vault of a first start, or opens the one that another process made at the same time.
  private static func standardVault(_ home: DataVaultHome) async throws -> Vault {
    do {
      return try await Vault.create(
        .messaging, in: home.store, credentials: .standard, parameters: home.vaultParameters)
    } catch  where error.code == .alreadyExists {
      let vault = try await messagingVault(home)
      try await vault.unlock(with: .standard)
      return vault
    }
  }

  private static func facts(of given: Vault?) async -> StartDecision.GivenVault {
    guard let given else { return .none }
    return await given.isLocked ? .locked : .unlocked
  }

  private static func storedVault(
    _ home: DataVaultHome
  ) async throws -> StartDecision.StoredVault {
    guard try await Vault.exists(.messaging, in: home.store) else { return .absent }
    return try await messagingVault(home).status().isSecured ? .secured : .standard
  }

  /// Whether the database exists; a log without its database counts, as it shows that there was
  /// one.
  private static func databaseExists(_ home: DataVaultHome) throws -> Bool {
    for suffix in ["", "-wal", "-journal"] {
      let path = FilePath(home.databasePath.string + suffix)
      if try home.fileSystem.status(of: path) != nil { return true }
    }
    return false
  }
}
