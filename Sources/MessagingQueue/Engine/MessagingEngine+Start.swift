public import DataVault
internal import FileLayer
internal import GRDB
internal import Logging
internal import SealedSQLite
public import SystemPackage
internal import VaultCrypto
public import VaultedDatabase

extension MessagingEngine {
  /// Starts an engine on the messages of a home.
  ///
  /// An unlocked vault gives the key. Without one, a first start makes vault and database with the
  /// publicly known standard credentials, and a vault that is not secured is opened with them; both
  /// are warned about in the log, and refused if ``EngineConfiguration/requiresSecuredVault`` is set. No vault
  /// is made where a live session names one: it was there. A secured vault is opened through its session, which
  /// `datavault unlock` begins; the standard credentials are not tried on it. When that session is
  /// ended by `datavault lock`, or the vault locked by `Vault.lock()`, the engine ends; when their time
  /// is over, it goes on.
  ///
  /// - Parameters:
  ///   - home: where vault and database are.
  ///   - vault: the messaging vault of that home; unlocked, unless the engine is to try the
  ///     session or the standard credentials.
  ///   - configuration: its ``EngineConfiguration/unlockTimeout`` says how long to wait for a
  ///     session.
  /// - Throws: `vaultLocked`; `keyMissing`, `vaultMissing`, `notSecured`, `databaseMissing`,
  ///   `databaseMismatch`, `plainDatabase`; `rolledBack`, to be accepted with ``acceptRollback(_:vault:)``;
  ///   `damaged`, `newerVersion`; `busy`, `diskFull`, `inputOutput`, `vault`.
  public static func start(
    _ home: DataVaultHome, vault: Vault? = nil,
    configuration: EngineConfiguration = EngineConfiguration()
  ) async throws(EngineError) -> MessagingEngine {
    let life = EngineStateStore(logger: configuration.logger)
    let engine = try await startUnlessLocked(
      home, vault: vault, configuration: configuration, life: life)
    guard let engine else { throw EngineError(refusing: .vaultLocked, home) }
    return engine
  }

  /// Starts an engine, unless its vault is locked after it was found open.
  ///
  /// - Parameter life: shows the start from its beginning.
  /// - Returns: nil if it was: nobody has been waited for then.
  package static func startUnlessLocked(
    _ home: DataVaultHome, vault: Vault?, configuration: EngineConfiguration, life: EngineStateStore
  ) async throws(EngineError) -> MessagingEngine? {
    _ = life.handle(.start)
    let engine: MessagingEngine?
    do throws(EngineError) {
      let vault = try await startingVault(
        home, given: vault, configuration: configuration)
      engine = try await openUnlessLocked(
        home, vault: vault, configuration: configuration, life: life)
    } catch {
      _ = life.handle(.failed(error.code))
      throw error
    }
    guard let engine else {
      _ = life.handle(.failed(.vaultLocked))
      return nil
    }
    if life.handle(.opened) == .closeDown {
      try await engine.closeDown()
      if life.refusal == .vaultLocked { return nil }
      throw .notRunning(life.refusal ?? .stopped)
    }
    return engine
  }

  private static func openUnlessLocked(
    _ home: DataVaultHome, vault: Vault, configuration: EngineConfiguration, life: EngineStateStore
  ) async throws(EngineError) -> MessagingEngine? {
    do throws(EngineError) {
      return try await open(home, vault: vault, configuration: configuration, life: life)
    } catch {
      guard error.code == .vaultLocked else { throw error }
      return nil
    }
  }

  private static func open(
    _ home: DataVaultHome, vault: Vault, configuration: EngineConfiguration, life: EngineStateStore
  ) async throws(EngineError) -> MessagingEngine {
    let ties = VaultLockObserver(
      vault, life, stopsWhenVaultExpires: configuration.stopsWhenVaultExpires)
    var databaseConfiguration = Configuration()
    databaseConfiguration.busyMode = .timeout(configuration.busyTimeout / .seconds(1))
    let database: VaultedDatabase
    let isSecured: Bool
    do {
      database = try await VaultedDatabase.open(
        home, vault: vault, configuration: databaseConfiguration, ledger: EngineAnchorStorage())
      isSecured = try await vault.status().isSecured
    } catch {
      throw EngineError(starting: error)
    }
    do {
      let engine = try await MessagingEngine(
        pool: database.pool, time: SystemTimeSource(), configuration: configuration,
        isSecured: isSecured, life: life,
        recordAnchor: {
          try await database.recordAnchor(of: home, vault: vault, ledger: EngineAnchorStorage())
        },
        isLockedOut: { vault.isLockedFromOutside },
        closePool: {
          try database.close()
          withExtendedLifetime(ties) {}
        })
      ties.tie(engine)
      engine.beginMaintenance {
        let path = FilePath(home.databasePath.string + "-maintenance")
        // One that root owned would keep the daemon from its maintenance for good.
        try? home.fileSystem.makeLockFile(path)
        return try? home.fileSystem.lock(path, wait: false)
      }
      engine.beginObservation()
      if !isSecured { configuration.warnOfNoSecurity(home) }
      configuration.warnOfMemory()
      if database.discardedLogFrameCount > 0 {
        configuration.warnOfDiscardedLog(home, frameCount: database.discardedLogFrameCount)
      }
      return engine
    } catch {
      try? database.close()
      throw EngineError(starting: error)
    }
  }

  /// Starts an engine on an unencrypted file, to be compared with.
  @_spi(Testing)
  public static func start(
    unencryptedAt path: FilePath, configuration: EngineConfiguration = EngineConfiguration()
  ) async throws(EngineError) -> MessagingEngine {
    do {
      let pool = try DatabasePool(path: path.string)
      return try await MessagingEngine(
        pool: pool, time: SystemTimeSource(), configuration: configuration, isSecured: false,
        closePool: { try SealedDatabase.close(pool) })
    } catch {
      throw EngineError(starting: error)
    }
  }

  /// An unlocked vault, by the rules of ``StartDecision``.
  private static func startingVault(
    _ home: DataVaultHome, given: Vault?, configuration: EngineConfiguration
  ) async throws(EngineError) -> Vault {
    do {
      let stored = try await storedVault(home)
      let decision = StartDecision(
        given: await facts(of: given), stored: stored, databaseExists: try databaseExists(home),
        sessionExists: stored == .absent ? try await sessionExists(home) : false,
        requiresSecuredVault: configuration.requiresSecuredVault)
      switch (decision.action, given) {
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
          throw EngineError(refusing: .vaultLocked, home)
        }
        return vault
      case (.refuse(let code), _):
        throw EngineError(refusing: code, home)
      }
    } catch let error as VaultError where error.code == .wrongPassword {
      throw EngineError(refusing: .vaultLocked, home)
    } catch {
      throw EngineError(starting: error)
    }
  }

  private static func messagingVault(_ home: DataVaultHome, given: Vault?) async throws -> Vault {
    if let given { return given }
    return try await Vault.get(.messaging, in: home.store, parameters: home.vaultParameters)
  }

  /// Who does not wait does not mind a kernel without sessions either.
  private static func isUnlockedBySession(
    _ vault: Vault, _ configuration: EngineConfiguration
  ) async throws -> Bool {
    if try await vault.unlockWithSession() { return true }
    guard configuration.unlockTimeout > .zero else { return false }
    configuration.logger.notice("the messaging vault is locked: waiting for datavault unlock")
    return try await vault.unlockWithSession(waitingUpTo: configuration.unlockTimeout)
  }

  /// Makes the vault of a first start, or opens the one that another process has made meanwhile.
  private static func standardVault(_ home: DataVaultHome) async throws -> Vault {
    do {
      return try await Vault.create(
        .messaging, in: home.store, credentials: .standard, parameters: home.vaultParameters)
    } catch  where error.code == .alreadyExists {
      let vault = try await Vault.get(
        .messaging, in: home.store, parameters: home.vaultParameters)
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
    let status = try await Vault.get(
      .messaging, in: home.store, parameters: home.vaultParameters
    ).status()
    return status.isSecured ? .secured : .standard
  }

  /// Where the kernel refuses sessions there is none.
  private static func sessionExists(_ home: DataVaultHome) async throws -> Bool {
    do throws(VaultError) {
      return try await VaultSession.find(
        .messaging, in: home.store, parameters: home.vaultParameters) != nil
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      return false
    }
  }

  /// A log without its database counts: it was there.
  private static func databaseExists(_ home: DataVaultHome) throws -> Bool {
    for suffix in ["", "-wal", "-journal"] {
      let path = FilePath(home.databasePath.string + suffix)
      if try home.fileSystem.status(of: path) != nil { return true }
    }
    return false
  }
}
