internal import GRDB

/// What keeps a database in shape while engines work on it: retention, and space given back.
///
/// Everything happens in small transactions on the writer's queue, between which others write.
struct Maintenance: Sendable {
  /// Messages that one transaction looks at.
  static let messagesAtOnce = 500
  /// Pages that one transaction gives back.
  static let pagesAtOnce = 256
  /// Free pages that are kept for messages to come; more than a tenth of the file is too many, too.
  static let sparePageCount = 1024

  let operations: QueueOperations

  private var commits: CommitQueue { operations.commits }

  /// Removes what is over the limits of its channel.
  ///
  /// - Returns: How many messages.
  func sweep() async throws(EngineError) -> Int {
    let channels = try await commits.run(during: "looking for limits") { db in
      try EngineDatabase.limitedChannels(db)
    }
    var total = 0
    for channel in channels {
      var last: Timetoken?
      repeat {
        let step = try await commits.run(during: "retention") {
          [last, tables = operations.tables] db in
          try tables.sweep(channel, after: last, count: Self.messagesAtOnce, in: db)
        }
        total += step.removedCount
        last = step.last
      } while last != nil
    }
    return total
  }

  /// Gives free pages back until `spare` are left.
  ///
  /// - Returns: How many pages.
  func giveBack(sparing spare: @escaping @Sendable (EngineDatabase.FileUse) -> Int)
    async throws(EngineError) -> Int
  {
    var total = 0
    while true {
      let count = try await commits.run(during: "giving space back") { db in
        let use = try EngineDatabase.fileUse(db)
        let count = min(use.freePageCount - spare(use), Self.pagesAtOnce)
        return count > 0
          ? use.freePageCount - (try EngineDatabase.giveBack(pageCount: count, db)) : 0
      }
      if count == 0 { return total }
      total += count
    }
  }

  /// What is left free after an ordinary round.
  @Sendable static func spare(_ use: EngineDatabase.FileUse) -> Int {
    max(sparePageCount, use.pageCount / 10)
  }
}
