internal import Foundation
package import Replication
internal import Synchronization

/// A log in memory, which can lose its end, and is cut off from one of its nodes.
package final class MemoryLog: Sendable {
  private struct State {
    var stored: [LogEntry] = []
    var trimmedThrough: UInt64 = 0
    var clock: Int64 = 0
    var isDown = false
  }

  private let state = Mutex(State())

  package init() {}

  package struct Down: Error {}

  /// Takes records away from the end, as brokers do that had not synchronized them.
  package func forget(_ count: Int) {
    state.withLock { $0.stored.removeLast(min(count, $0.stored.count)) }
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
      for record in records {
        state.clock += 1
        let last = state.stored.last?.sequence ?? state.trimmedThrough
        state.stored.append(LogEntry(sequence: last + 1, storedAt: state.clock, record))
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
        return (
          state.stored.filter { $0.sequence >= max(place, 1) }.prefix(500),
          state.stored.last?.sequence ?? state.trimmedThrough, state.trimmedThrough + 1
        )
      }
      let hasNews = found.last.map { $0.sequence > place } ?? false
      if hasNews || ContinuousClock.now >= end || last < place {
        return Applier.Batch(
          first: first, last: last, entries: Array(found), sentAt: sentAt, receivedAt: now())
      }
      usleep(2_000)
    }
  }

  fileprivate func trim(through position: UInt64) {
    state.withLock { state in
      state.stored.removeAll { $0.sequence <= position }
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

  package init() {}

  package func request(_ bytes: [UInt8], to member: MemberID, within limit: Duration) async throws
    -> [UInt8]
  {
    guard let answer = answers.withLock({ $0[member] }) else { throw Unanswered() }
    return try await withThrowingTaskGroup { group in
      group.addTask {
        await withCheckedContinuation { caller in answer(bytes) { caller.resume(returning: $0) } }
      }
      group.addTask {
        try await Task.sleep(for: limit)
        throw Unanswered()
      }
      defer { group.cancelAll() }
      return try await group.next() ?? []
    }
  }

  package func serve(as member: MemberID, _ answer: @escaping Answer) {
    answers.withLock { $0[member] = answer }
  }
}
