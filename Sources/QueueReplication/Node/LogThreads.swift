internal import FileLayer
internal import Replication

/// Reads the log on a thread of its own, which waits for the next record.
actor LogReader: BlockingActor {
  nonisolated let executor = BlockingExecutor(label: "datavault.replication-reader")
  private let log: any ReplicatedLog

  init(_ log: any ReplicatedLog) { self.log = log }

  func read(at place: UInt64, mostBytes: Int, wait: Duration) throws -> Applier.Batch {
    try log.read(at: place, mostBytes: mostBytes, wait: wait)
  }
}

/// Appends to the log, and trims it, on another thread.
actor LogAppender: BlockingActor {
  nonisolated let executor = BlockingExecutor(label: "datavault.replication-appender")
  private let log: any ReplicatedLog

  init(_ log: any ReplicatedLog) { self.log = log }

  func append(_ records: [SealedRecord]) throws { try log.append(records) }

  func trim(through position: UInt64) throws { try log.trim(through: position) }
}
