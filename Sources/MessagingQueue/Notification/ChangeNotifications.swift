internal import FileLayer

/// What has been published since the last notification.
public struct ChangeNotification: Sendable, Hashable {
  /// The channels that have new messages, each with the newest of them.
  ///
  /// A message that was removed from the log before the notification is not counted.
  public let newest: [Channel: Timetoken]

  /// Everything up to here has been told; the next notification tells what is beyond.
  public let through: Timetoken

  /// The channels that have new messages.
  public var channels: Set<Channel> { Set(newest.keys) }
}

/// Tells that something was published, once for all that was published close together.
///
/// The first publication arms a timer; each further one puts it off, up to the maximum latency. It
/// then tells what the log has gained since, by any process; who is slow to take the notification is
/// told all at once when they do. No payload is read.
///
/// It is for one subscriber, who counts from the call that made it: each other one asks for a
/// sequence of its own. Cancelling the task ends it; stopping the engine ends it with `stopped`.
public struct ChangeNotifications: AsyncSequence, Sendable {
  /// What it yields.
  public typealias Element = ChangeNotification
  /// What it throws.
  public typealias Failure = EngineError

  let reader: LogReader
  let time: any TimeSource
  /// nil for all.
  let channels: Set<Channel>?
  let start: Int64
  let delay: Duration
  let maximumLatency: Duration
  let ignored: LocalPublicationList?

  /// Starts where the sequence was made.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// Waits for the notifier and for the timer.
  public struct Iterator: AsyncIteratorProtocol {
    private let sequence: ChangeNotifications
    private var cursor: Int64
    private var isOver = false

    init(_ sequence: ChangeNotifications) {
      self.sequence = sequence
      cursor = sequence.start
    }

    /// The next notification; nil once the task is cancelled.
    ///
    /// - Throws: `stopped`, `vaultLocked`, `damaged`, `inputOutput`. The sequence is over then.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws(EngineError) -> ChangeNotification? {
      do {
        while !isOver, !Task.isCancelled {
          let count = sequence.reader.notifier.generation
          // What is there already is as good as a ring.
          let first = try await sequence.changes(after: cursor)
          if first.newest.isEmpty {
            cursor = first.highWater
            let wake = await sequence.reader.notifier.waitForChange(
              after: count, in: sequence.channels)
            if wake != .changed { continue }
          }
          guard await sequence.waitForTheBurst() else { continue }
          let changes = try await sequence.changes(after: cursor)
          cursor = changes.highWater
          if changes.newest.isEmpty { continue }
          return ChangeNotification(
            newest: changes.newest, through: Timetoken(unchecked: changes.highWater))
        }
      } catch {
        isOver = true
        throw error
      }
      isOver = true
      return nil
    }
  }

  private func changes(after cursor: Int64) async throws(EngineError) -> LogChanges {
    let channels = channels
    let ignored = ignored
    return try await reader.read(during: "looking for changes") { db in
      try EngineDatabase.changes(
        in: channels, after: cursor, ignoring: { ignored?.ranges(after: cursor) ?? [] }, db)
    }
  }

  /// Returns when it is time to tell; false if the wait was cut off.
  private func waitForTheBurst() async -> Bool {
    var coalescer = ChangeCoalescer(delay: delay, maximumLatency: maximumLatency)
    var count = reader.notifier.generation
    var action = coalescer.changed(at: time.sinceBoot)
    while case .waitForEventOrTime(let due) = action {
      let wake = await reader.notifier.waitForChange(
        after: count, in: channels, within: due - time.sinceBoot)
      count = reader.notifier.generation
      switch wake {
      case .changed: action = coalescer.changed(at: time.sinceBoot)
      case .timedOut: action = coalescer.time(Swift.max(due, time.sinceBoot))
      case .stopped, .cancelled: return false
      }
    }
    return true
  }
}
