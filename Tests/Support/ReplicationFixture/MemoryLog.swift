internal import Foundation
package import Replication
internal import Synchronization

/// A log in memory, which can lose its end, and is cut off from one of its nodes.
package final class MemoryLog: Sendable {
  private struct State {
    var stored: [LogEntry] = []
    var trimmedThrough: UInt64 = 0
    var clock: Int64 = 0
    /// When the last records were stored, for ``MemoryLog/forget(storedWithin:)``.
    var storedAt: [ContinuousClock.Instant] = []
    var isDown = false
    /// What reaches the log in place of records that are sent.
    var transmission: (@Sendable ([SealedRecord]) -> [SealedRecord])?
  }

  private let state = Mutex(State())

  package init() {}

  package struct Down: Error {}

  /// Takes records away from the end, as brokers do that had not synchronized them.
  package func forget(_ count: Int) {
    state.withLock { state in
      let count = min(count, state.stored.count)
      state.stored.removeLast(count)
      state.storedAt.removeLast(count)
    }
  }

  /// Takes away at most so many of the records that were stored lately.
  ///
  /// - Returns: how many.
  @discardableResult
  package func forget(_ most: Int, storedWithin interval: Duration) -> Int {
    state.withLock { state in
      let oldest = ContinuousClock.now - interval
      let count = min(most, state.storedAt.reversed().prefix { $0 > oldest }.count)
      state.stored.removeLast(count)
      state.storedAt.removeLast(count)
      return count
    }
  }

  /// Loses, repeats or reorders what is sent from now on; nil for a log that takes it as it is.
  package func setTransmission(_ change: (@Sendable ([SealedRecord]) -> [SealedRecord])?) {
    state.withLock { $0.transmission = change }
  }

  /// Refuses all reads and appends.
  package func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }

  package var count: Int { state.withLock { $0.stored.count } }
  package var firstSequence: UInt64 { state.withLock { $0.trimmedThrough + 1 } }
  package var records: [SealedRecord] { state.withLock { $0.stored.map(\.record) } }

  /// Appends what somebody else sends.
  package func append(_ records: [SealedRecord]) throws {
    try state.withLock { state in
      if state.isDown { throw Down() }
      for record in state.transmission?(records) ?? records {
        state.clock += 1
        let last = state.stored.last?.sequence ?? state.trimmedThrough
        state.stored.append(LogEntry(sequence: last + 1, storedAt: state.clock, record))
        state.storedAt.append(.now)
      }
    }
  }

  fileprivate func read(
    at place: UInt64, now: () -> Duration, wait: Duration
  ) throws -> Applier.Batch {
    let sentAt = now()
    let end = ContinuousClock.now + wait
    while true {
      let (found, last, first) = try state.withLock { state in
        if state.isDown { throw Down() }
        let passed = place > state.trimmedThrough ? Int(place - state.trimmedThrough) - 1 : 0
        return (
          state.stored.dropFirst(passed).prefix(500),
          state.stored.last?.sequence ?? state.trimmedThrough, state.trimmedThrough + 1
        )
      }
      let hasNews = found.last.map { $0.sequence > place } ?? false
      if hasNews || ContinuousClock.now >= end || last < place {
        return Applier.Batch(
          first: first, last: last, entries: Array(found), sentAt: sentAt, receivedAt: now())
      }
      // The log is read by looking, as it has no thread to wake.
      usleep(2_000)
    }
  }

  fileprivate func trim(through position: UInt64) {
    state.withLock { state in
      let count = state.stored.prefix { $0.sequence <= position }.count
      state.stored.removeFirst(count)
      state.storedAt.removeFirst(count)
      state.trimmedThrough = max(state.trimmedThrough, position)
    }
  }
}

/// The log as one node reaches it.
package final class MemoryLogConnection: ReplicatedLog {
  private let log: MemoryLog
  private let now: @Sendable () -> Duration
  private let isCutOff = Atomic(false)

  package init(_ log: MemoryLog, now: @escaping @Sendable () -> Duration) {
    self.log = log
    self.now = now
  }

  package func setCutOff(_ cutOff: Bool) {
    isCutOff.store(cutOff, ordering: .sequentiallyConsistent)
  }

  private func requireConnection() throws {
    if isCutOff.load(ordering: .sequentiallyConsistent) { throw MemoryLog.Down() }
  }

  package func append(_ records: [SealedRecord]) throws {
    try requireConnection()
    try log.append(records)
  }

  package func read(at place: UInt64, mostBytes: Int, wait: Duration) throws -> Applier.Batch {
    try requireConnection()
    let batch = try log.read(at: place, now: now, wait: wait)
    // An answer that was on its way is lost too.
    try requireConnection()
    return batch
  }

  package func trim(through position: UInt64) throws {
    try requireConnection()
    log.trim(through: position)
  }
}

/// Requests between nodes of one process.
package final class MemoryExchange: MemberExchange {
  package typealias Answer = @Sendable ([UInt8], @escaping @Sendable ([UInt8]) -> Void) -> Void

  package struct Unanswered: Error {}

  private let answers = Mutex<[MemberID: Answer]>([:])
  private let isLost = Mutex<(@Sendable (MemberID, [UInt8]) -> Bool)?>(nil)
  private let answered = Atomic(0)

  package init() {}

  /// How many requests have got their reply.
  package var answeredCount: Int { answered.load(ordering: .sequentiallyConsistent) }

  /// Loses the requests and replies from now on for which `isLost` says so; nil: none.
  ///
  /// - Parameter isLost: gets the recipient of a request, and the bytes of the request or of its reply.
  package func setLoss(_ isLost: (@Sendable (MemberID, [UInt8]) -> Bool)?) {
    self.isLost.withLock { $0 = isLost }
  }

  private func loses(_ bytes: [UInt8], to member: MemberID) -> Bool {
    isLost.withLock(\.self)?(member, bytes) ?? false
  }

  package func request(
    _ bytes: [UInt8], to member: MemberID, within limit: Duration,
    isReply: @escaping @Sendable ([UInt8]) -> Bool
  ) async throws -> [UInt8] {
    let (replies, caller) = AsyncStream.makeStream(of: [UInt8].self)
    if !loses(bytes, to: member), let answer = answers.withLock({ $0[member] }) {
      answer(bytes) { [self] reply in if !loses(reply, to: member) { caller.yield(reply) } }
    }
    let reply: [UInt8] = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      group.addTask {
        for await reply in replies where isReply(reply) { return reply }
        throw Unanswered()
      }
      group.addTask {
        // The time limit of the request.
        try await Task.sleep(for: limit)
        throw Unanswered()
      }
      defer { group.cancelAll() }
      return try await group.next() ?? []
    }
    answered.add(1, ordering: .sequentiallyConsistent)
    return reply
  }

  package func serve(as member: MemberID, _ answer: @escaping Answer) {
    answers.withLock { $0[member] = answer }
  }
}
