internal import FileLayer
internal import GRDB
internal import Logging
internal import Synchronization

extension MessagingEngine {
  /// Sets how long a channel keeps messages.
  ///
  /// On return it is on the disk; one of the engines on the database removes what is over the limits
  /// before long (``EngineConfiguration/maintenanceInterval``).
  ///
  /// - Throws: `invalidArgument`; `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`,
  ///   `outcomeUnknown`, `cancelled`.
  public nonisolated func setRetention(
    _ retention: Retention, of channel: Channel
  ) async throws(EngineError) {
    try await running().setRetention(retention, of: channel)
  }

  /// How long a channel keeps messages; the default for one that is not there.
  public nonisolated func retention(of channel: Channel) async throws(EngineError) -> Retention {
    try await log.read(during: "reading a retention") { db in
      try EngineDatabase.retention(of: channel, db)
    }
  }

  /// Removes a channel's messages, the oldest first, from the log and from every consumer, whoever has
  /// them in hand.
  ///
  /// It does so in many small transactions, between which others write. What was removed is overwritten
  /// (SQLite's `secure_delete`), in the database by the checkpoint at the end, which also empties its log
  /// if no reader is in the way.
  ///
  /// - Parameter end: the first message to be kept; nil, the default, for none.
  /// - Returns: How many there were.
  /// - Throws: `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`, `outcomeUnknown`, `cancelled`:
  ///   what was removed before that stays removed.
  @discardableResult
  public nonisolated func purge(
    _ channel: Channel, before end: Timetoken? = nil
  ) async throws(EngineError) -> Int {
    let total = try await running().purge(channel, before: end)
    if total > 0 { try await emptyLog() }
    return total
  }

  /// Gives the space of removed messages back to the file system, in small steps between which others
  /// write.
  ///
  /// - Returns: How many bytes the database gave back.
  /// - Throws: as ``purge(_:before:)``.
  @discardableResult
  public nonisolated func compact() async throws(EngineError) -> Int {
    let maintenance = Maintenance(operations: try running())
    let pageCount = try await maintenance.giveBack { _ in 0 }
    try await emptyLog()
    return pageCount * 4096
  }

  /// One round of what the engine does by itself now and then: retention, and space given back when
  /// more is free than messages to come will soon take.
  ///
  /// - Returns: How many messages went.
  /// - Throws: as ``purge(_:before:)``.
  @discardableResult
  public nonisolated func maintain() async throws(EngineError) -> Int {
    let maintenance = Maintenance(operations: try running())
    let count = try await maintenance.sweep()
    _ = try await maintenance.giveBack(sparing: Maintenance.spare)
    return count
  }

  /// Copies the log into the database and empties it, as far as readers let it.
  nonisolated func emptyLog() async throws(EngineError) {
    let pool = try running().tables.pool
    let outcome: Result<Void, EngineError> = await withCheckedContinuation { continuation in
      pool.asyncWriteWithoutTransaction { db in
        continuation.resume(
          returning: Result { () throws(EngineError) in
            try translatingErrors(during: "emptying the log") {
              do {
                try EngineDatabase.emptyLog(db)
              } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
                // A reader is in its way: a later checkpoint does it.
              }
            }
          })
      }
    }
    try outcome.get()
  }
}

extension MessagingEngine {
  /// Has this engine do a round of ``maintain()`` at each interval for as long as it runs, if it is the
  /// one that gets the lock.
  ///
  /// - Parameter lock: takes the lock, or returns nil at once while another engine has it.
  nonisolated func beginMaintenance(_ lock: @escaping @Sendable () -> FileLock?) {
    let interval = configuration.maintenanceInterval
    let task = Task { [weak self] in
      var held: FileLock?
      while (try? await Task.sleep(for: interval)) != nil, let self {
        held = held ?? lock()
        if held == nil { continue }
        do throws(EngineError) {
          let count = try await self.maintain()
          self.configuration.logger.debug("maintenance: removed \(count) messages")
        } catch {
          // A full disk or a busy database: the next round finds what this one has left.
          self.configuration.logger.debug("maintenance: \(error)")
        }
      }
      held?.release()
    }
    upkeep.withLock { $0 = task }
  }

  /// Ends the rounds; one that is under way ends with its transaction.
  nonisolated func endMaintenance() {
    upkeep.withLock { $0.take() }?.cancel()
  }
}
