internal import Synchronization

/// Lets callers that publish at the same time share one record of the log, and one transaction.
///
/// If no transaction runs, messages are posted immediately, alone. Those that come during it form the next record
/// together, in the order in which they came.
final class PostQueue: Sendable {
  private struct Waiting {
    let messages: [Message]
    let isAwaited: Bool
    let caller: CheckedContinuation<Result<(PostedRecord, Range<Int>), EngineError>, Never>
  }

  private struct State {
    var waiting: [Waiting] = []
    var isPosting = false
  }

  private let state = Mutex(State())
  private let commits: CommitQueue

  init(_ commits: CommitQueue) { self.commits = commits }

  /// Writes messages into the outbox.
  ///
  /// - Parameter isAwaited: whether the caller will ask for the places of the messages. Otherwise they are on the disk on
  ///   return.
  /// - Returns: the record, and which of its messages these are.
  func post(
    _ messages: [Message], isAwaited: Bool, to replica: any EngineReplica
  ) async throws(EngineError) -> (PostedRecord, Range<Int>) {
    if Task.isCancelled { throw .cancelled(during: "publishing") }
    return try await withCheckedContinuation { caller in
      let isFirst = state.withLock { state in
        state.waiting.append(Waiting(messages: messages, isAwaited: isAwaited, caller: caller))
        defer { state.isPosting = true }
        return !state.isPosting
      }
      if isFirst { Task { await self.postWaiting(to: replica) } }
    }.get()
  }

  private func postWaiting(to replica: any EngineReplica) async {
    while let group = next() {
      let messages = group.flatMap(\.messages)
      let callers = group.count(where: \.isAwaited)
      let result: Result<PostedRecord, EngineError>
      do throws(EngineError) {
        result = .success(
          // Those who wait for their places return after a durable commit: that of the record which was read back.
          try await commits.run(
            during: "publishing", isDurable: callers < group.count
          ) { db in
            try DatabaseSize.requireSpace(db)
            return try replica.post(messages, for: callers, in: db)
          })
      } catch {
        result = .failure(error)
      }
      var start = 0
      for waiting in group {
        let range = start..<start + waiting.messages.count
        start = range.upperBound
        waiting.caller.resume(returning: result.map { ($0, range) })
      }
    }
  }

  /// The messages of the next record; nil if none wait.
  private func next() -> [Waiting]? {
    state.withLock { state in
      var count = 0
      var messageCount = 0
      var byteCount = 0
      for waiting in state.waiting {
        messageCount += waiting.messages.count
        byteCount += waiting.messages.reduce(0) { $0 + $1.byteCount }
        // What one caller publishes is one record in any case, and what others publish has room beside it in no case.
        if count > 0,
          messageCount > CommitGroup.maximumOperationCount
            || byteCount > CommitGroup.maximumByteCount
        {
          break
        }
        count += 1
      }
      let group = Array(state.waiting.prefix(count))
      state.waiting.removeFirst(count)
      if group.isEmpty { state.isPosting = false }
      return group.isEmpty ? nil : group
    }
  }
}
