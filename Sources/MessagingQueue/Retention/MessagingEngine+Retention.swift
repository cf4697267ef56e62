internal import FileLayer
internal import GRDB
internal import Logging
internal import Synchronization

extension MessagingEngine {
  /// Sets how long a channel keeps messages.
  ///
  /// On return the setting is on the disk. One of the engines on the database then removes messages
  /// over the limits, within ``EngineConfiguration/maintenanceInterval``.
  ///
  /// - Throws: `invalidArgument`; `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`,
  ///   `outcomeUnknown`, `cancelled`.
  public func setRetention(
    _ retention: Retention, of channel: Channel
  ) async throws(EngineError) {
    try await running().setRetention(retention, of: channel)
  }

  /// How long a channel keeps messages; the default if the channel does not exist.
  public func retention(of channel: Channel) async throws(EngineError) -> Retention {
    try await reader.read(during: "reading a retention") { db in
      try EngineDatabase.retention(of: channel, db)
    }
  }

  /// Removes a channel's messages, the oldest first, from the log and from every consumer, leased
  /// or not.
  ///
  /// It uses many small transactions, between which other callers write. SQLite's `secure_delete`
  /// overwrites what was removed, in the database by the checkpoint at the end. That checkpoint
  /// also empties the log if no reader is active.
  ///
  /// - Parameter end: the first message to keep. Default: nil, none is kept.
  /// - Returns: how many were removed.
  /// - Throws: `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`, `outcomeUnknown`,
  ///   `cancelled`: messages removed before the error stay removed.
  @discardableResult
  public func purge(
    _ channel: Channel, before end: Timetoken? = nil
  ) async throws(EngineError) -> Int {
    let total = try await running().purge(channel, before: end)
    if total > 0 { try await emptyLog() }
    return total
  }

  /// Gives the space of removed messages back to the file system, in small steps between which
  /// other callers write.
  ///
  /// - Returns: how many bytes the database gave back.
  /// - Throws: the errors of ``purge(_:before:)``.
  @discardableResult
  public func compact() async throws(EngineError) -> Int {
    let maintenance = Maintenance(operations: try running())
    let pageCount = try await maintenance.giveBack { _ in 0 }
    try await emptyLog()
    return pageCount * 4096
  }

  /// Does one round of the maintenance that the engine also does by itself: it applies retention
  /// and gives free space back.
  ///
  /// It keeps a reserve of free pages for new messages.
  ///
  /// - Returns: how many messages were removed.
  /// - Throws: the errors of ``purge(_:before:)``.
  @discardableResult
  public func maintain() async throws(EngineError) -> Int {
    let maintenance = Maintenance(operations: try running())
    let count = try await maintenance.sweep()
    _ = try await maintenance.giveBack(sparing: Maintenance.spare)
    return count
  }

  /// Copies the log into the database and truncates it, as far as readers allow.
  func emptyLog() async throws(EngineError) {
    let pool = try running().tables.pool
    let outcome: Result<Void, EngineError> = await withCheckedContinuation { continuation in
      pool.asyncWriteWithoutTransaction { db in
        continuation.resume(
          returning: Result { () throws(EngineError) in
            try translatingErrors(during: "emptying the log") {
              do {
                try EngineDatabase.emptyLog(db)
              } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
                // A reader is active: a later checkpoint does it.
              }
            }
          })
      }
    }
    try outcome.get()
  }
}

extension MessagingEngine {
  /// Has this engine do a round of ``maintain()`` at each interval while it runs, if it holds the
  /// lock.
  ///
  /// - Parameter lock: takes the lock, or returns nil without waiting while another engine has it.
  func beginMaintenance(_ lock: @escaping @Sendable () -> FileLock?) {
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
          // A full disk or a busy database: the next round does what this one left.
          self.configuration.logger.debug("maintenance: \(error)")
        }
      }
      held?.release()
    }
    upkeep.withLock { $0 = task }
  }

  /// Ends the rounds; a round under way ends with its transaction.
  func endMaintenance() {
    upkeep.withLock { $0.take() }?.cancel()
  }
}
