internal import FileLayer
internal import GRDB
internal import VaultCrypto

/// Prepares the tables where blocking is allowed.
actor EngineOpener {
  private let executor = BlockingExecutor(label: "datavault.engine-opener")

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  func open(
    _ pool: DatabasePool, _ snapshots: SnapshotReader, time: any TimeSource, random: RandomSource,
    configuration: EngineConfiguration, bell: ChangeBell, tallies: TallyKeeper?
  ) throws(EngineError) -> EngineDatabase {
    try EngineDatabase(
      pool: pool, snapshots: snapshots, time: time, random: random, configuration: configuration,
      bell: bell, tallies: tallies)
  }
}
