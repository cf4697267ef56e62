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
    try retention.check()
    _ = try await perform(.setRetention(retention, of: channel))
  }

  /// How long a channel keeps messages; for one that does not exist, how long it would.
  public func retention(of channel: Channel) async throws(EngineError) -> Retention {
    try await access.read(during: "reading a retention") { db in
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
  /// - Parameters:
  ///   - end: the first message to keep. Default: nil, none is kept.
  ///   - progress: called after each transaction with the messages removed so far.
  /// - Returns: how many were removed.
  /// - Throws: `busy`, `diskFull`, `stopped`, `damaged`, `inputOutput`, `outcomeUnknown`,
  ///   `cancelled`: messages removed before the error stay removed.
  @discardableResult
  public func purge(
    _ channel: Channel, before end: Timetoken? = nil,
    progress: @Sendable (_ removedCount: Int) -> Void = { _ in }
  ) async throws(EngineError) -> Int {
    try await purge(channel, after: nil, before: end, progress: progress)
  }

  /// Removes the messages of a part of a channel's log, as ``purge(_:before:progress:)`` does.
  ///
  /// - Parameters:
  ///   - start: the first message to remove; default: nil, the oldest.
  ///   - end: the first message to keep after them; default: nil, none is kept.
  /// - Returns: how many were removed.
  /// - Throws: the errors of ``purge(_:before:progress:)``.
  package func removeMessages(
    of channel: Channel, from start: Timetoken? = nil, before end: Timetoken? = nil
  ) async throws(EngineError) -> Int {
    try await purge(channel, after: start?.previous, before: end, progress: { _ in })
  }

  private func purge(
    _ channel: Channel, after start: Timetoken?, before end: Timetoken?,
    progress: @Sendable (_ removedCount: Int) -> Void
  ) async throws(EngineError) -> Int {
    var total = 0
    var atOnce = Self.messagesAtOnce
    while true {
      let count: Int
      do throws(EngineError) {
        count = Int(
          try await perform(.purge(channel, after: start, before: end, count: atOnce)).count)
      } catch {
        // Removing overwrites: large messages need as much room in the log.
        guard error.code == .diskFull, atOnce > 1 else { throw error }
        atOnce = 1
        try? await truncateWriteAheadLog()
        continue
      }
      total += count
      progress(total)
      if count < atOnce { break }
      if atOnce == 1 { try? await truncateWriteAheadLog() }
    }
    if total > 0 { try await truncateWriteAheadLog() }
    return total
  }

  /// Gives the space of removed messages back to the file system, in small steps between which
  /// other callers write.
  ///
  /// It also makes the reserve, if the disk has space for it.
  ///
  /// - Parameter progress: called after each step with the bytes given back so far.
  /// - Returns: how many bytes the database gave back.
  /// - Throws: the errors of ``purge(_:before:progress:)``.
  @discardableResult
  public func compact(
    progress: @Sendable (WorkProgress) -> Void = { _ in }
  ) async throws(EngineError) -> Int {
    let pageCount = try await giveBack(keepsSpare: false, progress: progress)
    try await truncateWriteAheadLog()
    reserve?.make()
    return pageCount * 4096
  }

  /// Does one round of the maintenance that the engine also does by itself: it applies retention,
  /// gives free space back, and makes the reserve.
  ///
  /// It keeps some free pages for new messages.
  ///
  /// - Returns: how many messages were removed.
  /// - Throws: the errors of ``purge(_:before:progress:)``.
  @discardableResult
  public func maintain() async throws(EngineError) -> Int {
    let count = try await sweep()
    _ = try await giveBack(keepsSpare: true)
    reserve?.make()
    return count
  }

  /// Copies the write-ahead log into the database and truncates it, as far as readers allow.
  func truncateWriteAheadLog() async throws(EngineError) {
    try await access.onWriter(during: "emptying the log") { db in
      do {
        try db.checkpoint(.truncate)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
        // A reader is active: a later checkpoint does it.
      }
    }
  }
}

/// The steps of maintenance: small transactions, between which other callers write.
extension MessagingEngine {
  /// Messages that one transaction looks at.
  static let messagesAtOnce = 500
  /// Pages that one transaction gives back.
  private static let pagesAtOnce = 256

  /// Removes messages over the limits of their channels.
  ///
  /// - Returns: how many messages were removed.
  private func sweep() async throws(EngineError) -> Int {
    if let replica = try replica(), !replica.sweeps { return 0 }
    let channels = try await access.read(during: "looking for limits") { db in
      try EngineDatabase.limitedChannels(db)
    }
    var total = 0
    for channel in channels {
      var last: Timetoken?
      repeat {
        let step = try await perform(
          .sweep(channel, after: last, count: Self.messagesAtOnce))
        total += Int(step.count)
        last = step.last
      } while last != nil
    }
    return total
  }

  /// Gives free pages back to the file system.
  ///
  /// - Returns: how many pages it gave back.
  private func giveBack(
    keepsSpare: Bool, progress: (WorkProgress) -> Void = { _ in }
  ) async throws(EngineError) -> Int {
    var total = 0
    while true {
      let (count, left) = try await commit(during: "giving space back") { _, db in
        try EngineDatabase.giveBack(upTo: Self.pagesAtOnce, keepsSpare: keepsSpare, db)
      }
      if count == 0 { return total }
      total += count
      progress(WorkProgress(completed: total * 4096, total: (total + left) * 4096))
    }
  }
}

extension MessagingEngine {
  /// Starts a task that calls ``maintain()`` at each interval, while this engine holds the lock.
  ///
  /// It tries at each interval to take a lock that it does not hold.
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
          // For example a full disk or a busy database. The next round continues.
          self.configuration.logger.debug("maintenance: \(error)")
        }
      }
      held?.release()
    }
    upkeep.withLock { $0 = task }
  }

  /// Cancels the task; a transaction that has begun is still committed.
  func endMaintenance() {
    upkeep.withLock { $0.take() }?.cancel()
  }
}
