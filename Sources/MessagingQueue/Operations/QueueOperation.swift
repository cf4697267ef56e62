internal import FileLayer
package import GRDB

/// A change of the queue other than publishing, receiving and settling.
///
/// What it does depends on nothing but the rows, its values, and the time of the tables. So the nodes of a replicated
/// home, which run it at the same place of the log, come to the same rows.
package enum QueueOperation: Sendable {
  case addConsumer(Consumer, of: Channel, maximumAttempts: Int?)
  /// Adds a consumer that receives for the first time; one that is known stays as it is.
  case addMissingConsumer(Consumer, of: Channel)
  case removeConsumer(Consumer, of: Channel)
  case redrive([Timetoken]?, of: Channel, for: Consumer)
  case removeDeadLetters([Timetoken]?, of: Channel, for: Consumer)
  case setRetention(Retention, of: Channel)
  /// Removes the oldest messages after one place and before another, at most so many.
  case purge(Channel, after: Timetoken?, before: Timetoken?, count: Int)
  case cancel([Timetoken], of: Channel)
  /// A step of a channel's retention.
  case sweep(Channel, after: Timetoken?, count: Int)
  /// Has channels of an application that an older version added keep acknowledged messages.
  case keepAcknowledged(application: String)
  /// A step of an application's retention, through channels by their numbers.
  case sweepApplication(String, before: Timetoken, channels: [Int64], after: Timetoken?, count: Int)
  /// Removes channels of an application that are empty.
  case removeChannels(application: String, before: Timetoken, [Int64])
  /// Reserves places of the log that no message gets.
  case reservePlaces(count: Int64)

  /// What it came to.
  package struct Result: Sendable {
    /// Rows that it changed; for places, the first one.
    package var count: Int64 = 0
    /// Where the next step continues.
    package var last: Timetoken?
    /// Channels that a step is done with; for a cancellation, the messages that it removed.
    package var passed: [Int64] = []

    package init(count: Int64 = 0, last: Timetoken? = nil, passed: [Int64] = []) {
      self.count = count
      self.last = last
      self.passed = passed
    }
  }

  /// For errors.
  var name: String {
    switch self {
    case .addConsumer, .addMissingConsumer: "adding a consumer"
    case .removeConsumer: "removing a consumer"
    case .redrive: "redriving"
    case .removeDeadLetters: "removing dead letters"
    case .setRetention: "setting a retention"
    case .purge: "purging"
    case .cancel: "cancelling"
    case .sweep, .keepAcknowledged, .sweepApplication, .removeChannels: "retention"
    case .reservePlaces: "reserving places"
    }
  }

  /// Runs it in the caller's transaction.
  ///
  /// - Throws: `invalidArgument` if it breaks a rule; the errors of SQLite.
  package func run(_ tables: EngineDatabase, _ db: Database) throws -> Result {
    switch self {
    case .addConsumer(let consumer, let channel, let maximumAttempts):
      try tables.addConsumer(consumer, of: channel, maximumAttempts: maximumAttempts, in: db)
      return Result()
    case .addMissingConsumer(let consumer, let channel):
      _ = try EngineDatabase.receivingConsumer(consumer, of: channel, db)
      return Result()
    case .removeConsumer(let consumer, let channel):
      return Result(count: try tables.removeConsumer(consumer, of: channel, in: db) ? 1 : 0)
    case .redrive(let timetokens, let channel, let consumer):
      return Result(count: try tables.redrive(timetokens, of: channel, for: consumer, in: db))
    case .removeDeadLetters(let timetokens, let channel, let consumer):
      return Result(
        count: try tables.removeDeadLetters(timetokens, of: channel, for: consumer, in: db))
    case .setRetention(let retention, let channel):
      try EngineDatabase.setRetention(retention, of: channel, db)
      return Result()
    case .purge(let channel, let start, let end, let count):
      return Result(
        count: try tables.purge(channel, after: start, before: end, count: count, in: db))
    case .cancel(let timetokens, let channel):
      let cancelled = try tables.cancel(timetokens, of: channel, in: db)
      return Result(passed: cancelled.map(\.rawValue))
    case .sweep(let channel, let start, let count):
      let step = try tables.sweep(channel, after: start, count: count, in: db)
      return Result(count: step.removedCount, last: step.last)
    case .keepAcknowledged(let application):
      try ApplicationSweep(application, before: Timetoken(unchecked: 0)).keepAcknowledged(db)
      return Result()
    case .sweepApplication(let application, let before, let channels, let start, let count):
      return try tables.sweepApplication(
        ApplicationSweep(application, before: before), channels, after: start, count: count, db)
    case .removeChannels(let application, let before, let channels):
      try ApplicationSweep(application, before: before)
        .removeChannels(channels, now: WallTime.ticks(of: tables.time.now), db)
      return Result()
    case .reservePlaces(let count):
      var clock = try TimetokenClock(db, now: tables.time.now)
      let places = try clock.reserve(count)
      try clock.store(db)
      return Result(count: places.lowerBound)
    }
  }
}

extension QueueOperation.Result {
  fileprivate init(count: Int, last: Timetoken? = nil) {
    self.init(count: Int64(count), last: last)
  }
}

extension MessagingEngine {
  /// Does it in a transaction that it can share, or through the log of a replicated home.
  func perform(
    _ operation: QueueOperation
  ) async throws(EngineError) -> QueueOperation.Result {
    if let replica = try replica() {
      try requireRunning()
      return try await replica.perform(operation)
    }
    return try await commit(during: operation.name) { tables, db in try operation.run(tables, db) }
  }
}
