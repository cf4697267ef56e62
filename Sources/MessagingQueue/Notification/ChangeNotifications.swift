internal import FileLayer

/// The messages published since the last notification.
public struct ChangeNotification: Sendable, Hashable {
  /// The channels with new messages, each with its newest one.
  ///
  /// A message that left the log before the notification does not count.
  public let newest: [Channel: Timetoken]

  /// The end of this notification: it covers everything up to here, the next one what comes after.
  public let through: Timetoken

  /// The channels with new messages.
  public var channels: Set<Channel> { Set(newest.keys) }
}

/// Notifications of published messages: one for all publications that come close together.
///
/// The first publication starts a timer; each further one restarts it, up to the maximum latency.
/// The notification then names what the log has gained since the last one, from any process. A slow
/// subscriber gets one notification for everything in between. No payload is read.
///
/// A sequence is for one subscriber and begins with the call that made it; another subscriber needs
/// a sequence of its own. Cancelling the task ends the sequence; stopping the engine ends it with
/// `stopped`.
public struct ChangeNotifications: AsyncSequence, Sendable {
  /// The element: one notification.
  public typealias Element = ChangeNotification
  /// The error that ends the sequence.
  public typealias Failure = EngineError

  let access: PoolAccess
  let notifier: ChangeNotifier
  let time: any TimeSource
  /// nil for all.
  let channels: Set<Channel>?
  let start: Int64
  let delay: Duration
  let maximumLatency: Duration
  let ignored: LocalPublicationList?

  /// Starts at the call that made the sequence.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// Waits for the notifier and for the timer.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: ChangeNotifications
    private var cursor: Int64
    private var hasEnded = false

    init(_ sequence: ChangeNotifications) {
      self.sequence = sequence
      cursor = sequence.start
    }

    /// The next notification; nil after the task is cancelled.
    ///
    /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`. The sequence has then ended.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(EngineError) -> ChangeNotification? {
      do {
        while !hasEnded, !Task.isCancelled {
          // Read before the database, so that a commit between the two ends the wait.
          let generation = sequence.notifier.generation
          // A change that is already there counts like a notification.
          let pending = try await sequence.changes(after: cursor)
          if pending.newest.isEmpty {
            cursor = pending.highWater
            let wake = await sequence.notifier.waitForChange(
              after: generation, in: sequence.channels)
            if wake != .changed { continue }
          }
          guard await sequence.waitForQuiet() else { continue }
          let changes = try await sequence.changes(after: cursor)
          cursor = changes.highWater
          if changes.newest.isEmpty { continue }
          return ChangeNotification(
            newest: changes.newest, through: Timetoken(unchecked: changes.highWater))
        }
      } catch {
        hasEnded = true
        throw error
      }
      hasEnded = true
      return nil
    }
  }

  private func changes(after cursor: Int64) async throws(EngineError) -> LogChanges {
    let channels = channels
    let ignored = ignored
    return try await access.read(during: "looking for changes") { db in
      try EngineDatabase.changes(
        in: channels, after: cursor, ignoring: { ignored?.ranges(after: cursor) ?? [] }, db)
    }
  }

  /// Returns true when the notification is due; false if the wait was stopped or cancelled.
  private func waitForQuiet() async -> Bool {
    var coalescer = ChangeCoalescer(delay: delay, maximumLatency: maximumLatency)
    var generation = notifier.generation
    var action = coalescer.changed(at: time.sinceBoot)
    while case .waitForEventOrTime(let due) = action {
      let wake = await notifier.waitForChange(
        after: generation, in: channels, within: due - time.sinceBoot)
      generation = notifier.generation
      switch wake {
      case .changed: action = coalescer.changed(at: time.sinceBoot)
      case .timedOut: action = coalescer.time(Swift.max(due, time.sinceBoot))
      case .stopped, .cancelled: return false
      }
    }
    return true
  }
}
