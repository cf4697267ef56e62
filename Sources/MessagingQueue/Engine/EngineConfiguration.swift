public import CoreMetrics
public import Logging
internal import SystemPackage
internal import VaultCrypto
internal import VaultedDatabase

/// Limits of an engine.
public struct EngineConfiguration: Sendable {
  /// The largest payload of a message, in bytes.
  ///
  /// Default: 1 MiB.
  public var maximumPayloadByteCount: Int = 1 << 20

  /// The largest sum of one message's header names and values, in bytes, with 6 more for each
  /// header.
  ///
  /// Default: 64 KiB.
  public var maximumHeaderByteCount: Int = 64 << 10

  /// The size of the reserve, in bytes; 0 for none.
  ///
  /// It is an allocated file beside the database. Maintenance makes it while the disk has four times as much free, and so
  /// does a stop once the database is as large. If the disk is full, every operation but publishing releases it and is
  /// tried again, and so is a start. So receivers can empty a disk that the queue has filled. It must be larger than the
  /// log, which a checkpoint empties at 4 MiB.
  /// Default: 8 MiB.
  public var reserveByteCount = 8 << 20

  /// How long the engine remembers a deduplication id after its message was published, by the wall
  /// clock.
  ///
  /// Default: 1 hour.
  public var deduplicationWindow: Duration = .seconds(3600)

  /// How often one of the engines on a database, whichever is first, does maintenance.
  ///
  /// Maintenance applies retention and gives free space back. Default: 10 seconds.
  public var maintenanceInterval: Duration = .seconds(10)

  /// How long an operation waits for another process that is writing.
  ///
  /// It then fails with ``EngineError/Code/busy``. Default: 5 seconds.
  public var busyTimeout: Duration = .seconds(5)

  /// How long a start waits for an unlock of the vault with `datavault unlock`.
  ///
  /// The start notices a session within half a second; cancelling the task ends the wait. If there
  /// is no session by then, the start fails with ``EngineError/Code/vaultLocked``. Default: zero,
  /// the start looks once.
  public var unlockTimeout: Duration = .zero

  /// Whether the engine starts only on a secured vault.
  ///
  /// If false, a first start makes a vault under the publicly known standard password, and a start
  /// opens an unsecured vault with it. If true, the first is refused as
  /// ``EngineError/Code/vaultMissing`` and the second as ``EngineError/Code/notSecured``. Set it in
  /// every program that runs in production. Default: false.
  public var requiresSecuredVault = false

  /// How long a stop waits for the work under way.
  ///
  /// After that time, operations that wait for their commit fail, and reads are interrupted.
  /// Default: 10 seconds.
  public var stopTimeout: Duration = .seconds(10)

  /// Whether the engine stops when the vault's lock timeout or its session expires.
  ///
  /// Default: false, the engine continues. Locking the vault always stops the engine.
  public var stopsWhenVaultExpires = false

  /// After how many commits this engine records an anchor in the vault: how far the database has
  /// come.
  ///
  /// An engine refuses a copy of the database that is older than the last anchor:
  /// `docs/explanation/vaulted-database.md`, "Anchor". Default: 10,000.
  public var anchorCommitCount = 10_000

  /// How long after a commit, at most, this engine records an anchor; a clean stop records one too.
  ///
  /// Default: 5 minutes.
  public var anchorInterval: Duration = .seconds(300)

  /// The most payload bytes that one call of receive reads into memory.
  ///
  /// The first message is always read. Default: 16 MiB.
  public var maximumReceiveByteCount: Int = 16 << 20

  /// Takes the engine's metrics: `docs/reference/observation.md` lists them.
  ///
  /// Default: `MetricsSystem.factory` at the moment when the configuration is made. Without a
  /// bootstrapped factory the engine counts nothing.
  public var metricsFactory: any MetricsFactory = MetricsSystem.factory

  /// Which channels have gauges of their own.
  ///
  /// Default: none, the gauges are sums over all channels.
  public var channelMetrics = ChannelMetrics.none

  /// How often the engine sets the gauges; it sets them less often if counting takes long.
  ///
  /// Default: 10 seconds.
  public var metricsInterval: Duration = .seconds(10)

  /// Takes the engine's log lines, which never contain a payload, a header, a key or a password.
  ///
  /// `docs/reference/observation.md` lists the lines and their levels. Default: a logger labelled
  /// `datavault.engine`.
  public var logger = Logger(label: "datavault.engine")

  /// The longest lease and the longest delay: 366 days.
  public static let maximumLeaseDuration: Duration = .seconds(366 * 86_400)

  /// The largest reason of a failure, in bytes.
  public static let maximumReasonByteCount = 1024

  /// The longest time to live: 100 years.
  static let maximumTimeToLive: Duration = .seconds(100 * 366 * 86_400)

  /// Makes a configuration with the defaults.
  public init() {}
}

extension EngineConfiguration {
  func warnOfReleasedReserve() {
    logger.warning("the disk is full: the reserve was released, to receive and remove messages")
  }

  func warnOfDiscardedLog(_ home: DataVaultHome, frameCount: Int) {
    logger.warning(
      """
      the last \(frameCount) frames of \(home.databasePath)-wal are torn or damaged and were left \
      out: after a power cut only an unacknowledged commit is lost, otherwise messages are missing
      """)
  }

  func warnOfFinishedSalvage(damagedPath: FilePath) {
    logger.warning(
      """
      an interrupted salvage was completed; its report of lost messages is not known, and messages \
      can be missing: the damaged files are at \(damagedPath)
      """)
  }

  func warnOfMissingAnchor() {
    logger.warning(
      """
      the engine stops without a rollback anchor for its last commits, because the vault is locked or \
      cannot be written: an older copy of the database would not be refused for them
      """)
  }

  /// Once a process, if the system has refused to lock memory.
  func warnOfMemory() {
    guard LockedMemory.takeWarning() else { return }
    logger.warning(
      "secrets cannot be locked into memory and can reach the swap: raise RLIMIT_MEMLOCK")
  }

  func warnOfNoSecurity(_ home: DataVaultHome) {
    logger.warning(
      """
      the messages in \(home.path) are not secured: they open with the publicly known password; \
      run datavault secure
      """)
  }
}
