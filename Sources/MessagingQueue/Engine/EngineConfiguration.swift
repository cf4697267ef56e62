public import CoreMetrics
public import Logging
internal import VaultCrypto
internal import VaultedDatabase

/// Limits of an engine.
public struct EngineConfiguration: Sendable {
  /// The most bytes one payload may have.
  ///
  /// Default: 1 MiB.
  public var maximumPayloadByteCount: Int = 1 << 20

  /// The most bytes the names and values of one message's headers may have, with 6 more for each.
  ///
  /// Default: 64 KiB.
  public var maximumHeaderByteCount: Int = 64 << 10

  /// How long a deduplication id is remembered after its message was published, by the wall clock.
  ///
  /// Default: 1 hour.
  public var deduplicationWindow: Duration = .seconds(3600)

  /// How often one of the engines on a database, whichever is first, does its maintenance: retention,
  /// and free space given back.
  ///
  /// Default: 10 seconds.
  public var maintenanceInterval: Duration = .seconds(10)

  /// How long an operation waits for another process that is writing.
  ///
  /// It then fails with ``EngineError/Code/busy``. Default: 5 seconds.
  public var busyTimeout: Duration = .seconds(5)

  /// How long a start waits for somebody to unlock the vault with `datavault unlock`.
  ///
  /// It notices within half a second; cancelling the task ends the wait. Without a session by then
  /// the start fails with ``EngineError/Code/vaultLocked``. Default: zero, it looks once.
  public var unlockTimeout: Duration = .zero

  /// Whether the engine starts only on a vault that is secured.
  ///
  /// Without it a first start makes a vault under the publicly known standard password, and a vault that
  /// is not secured is opened with it. With it the first is refused as
  /// ``EngineError/Code/vaultMissing``, the second as ``EngineError/Code/notSecured``. Set it in every
  /// program that is past its first look. Default: false.
  public var requiresSecuredVault = false

  /// How long a stop waits for the work that is under way.
  ///
  /// What still waits for its commit then fails; what reads is interrupted. Default: 10 seconds.
  public var stopTimeout: Duration = .seconds(10)

  /// Whether the engine stops when the lock timeout of its vault is over, or the time of the session
  /// through which the vault was opened.
  ///
  /// Default: false, a timeout is no outage. Somebody who locks the vault always ends the engine.
  public var stopsWhenVaultExpires = false

  /// After how many commits of this engine the vault is told how far the database has come.
  ///
  /// An older copy of the database is refused up to that point: `docs/explanation/vaulted-database.md`, "Anchor".
  /// Default: 10,000.
  public var anchorCommitCount = 10_000

  /// How long after a commit the vault is told of it at the latest; a clean stop tells it too.
  ///
  /// Default: 5 minutes.
  public var anchorInterval: Duration = .seconds(300)

  /// The most payload bytes that one call of receive takes into memory.
  ///
  /// The first message is always taken. Default: 16 MiB.
  public var maximumReceiveByteCount: Int = 16 << 20

  /// Takes what the engine counts and measures: `docs/reference/observation.md` lists it.
  ///
  /// Default: that of the process, `MetricsSystem.factory`, as it is when the configuration is made. With
  /// none bootstrapped nothing is counted.
  public var metricsFactory: any MetricsFactory = MetricsSystem.factory

  /// Which channels have gauges of their own.
  ///
  /// Default: none, the gauges are over all channels together.
  public var channelMetrics = ChannelMetrics.none

  /// How often the gauges are set; less often where the count behind them takes long.
  ///
  /// Default: 10 seconds.
  public var metricsInterval: Duration = .seconds(10)

  /// Takes what the engine says about itself; no payload, header, key or password is ever in it.
  ///
  /// `docs/reference/observation.md` lists what is said at which level.
  /// Default: one labelled `datavault.engine`.
  public var logger = Logger(label: "datavault.engine")

  /// The longest lease and the longest delay: 366 days.
  public static let maximumLeaseDuration: Duration = .seconds(366 * 86_400)

  /// The longest time to live: 100 years.
  static let longestTimeToLive: Duration = .seconds(100 * 366 * 86_400)

  /// Makes a configuration of the defaults.
  public init() {}
}

extension EngineConfiguration {
  func warnOfDiscardedLog(_ home: DataVaultHome, frameCount: Int) {
    logger.warning(
      """
      the last \(frameCount) frames of \(home.databasePath)-wal are torn or damaged and were left \
      out: after a power cut that is a commit nobody was told of, otherwise messages are missing
      """)
  }

  /// Once a process, when the system has refused to lock memory.
  func warnOfMemory() {
    guard LockedMemory.takeWarning() else { return }
    logger.warning(
      "secrets cannot be locked into memory and may reach the swap: raise RLIMIT_MEMLOCK")
  }

  func warnOfNoSecurity(_ home: DataVaultHome) {
    logger.warning(
      """
      the messages in \(home.path) are not secured: they open with the publicly known password; \
      run datavault secure
      """)
  }
}
