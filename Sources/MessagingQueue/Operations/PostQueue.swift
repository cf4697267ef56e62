internal import Synchronization

/// Lets callers that publish at the same time share one record of the log, and one transaction.
///
/// If no transaction runs, messages are posted immediately, alone. Those that come during it form the next record
/// together, in the order in which they came.
final class PostQueue: Sendable {
  private struct Waiting {
    let messages: [Message]
    let caller: CheckedContinuation<Result<(PostedRecord, Range<Int>), EngineError>, Never>
  }

  private struct State {
    var waiting: [Waiting] = []
    var isPosting = false
  }

  private let state = Mutex(State())
  private let commits: CommitQueue

  init(_ commits: CommitQueue) { self.commits = commits }

  /// Writes messages into the outbox, on the disk when it returns.
  ///
  /// - Returns: the record, and which of its messages these are.
  func post(
    _ messages: [Message], to replica: any EngineReplica
  ) async throws(EngineError) -> (PostedRecord, Range<Int>) {
    if Task.isCancelled { throw .cancelled(during: "publishing") }
    return try await withCheckedContinuation { caller in
      let isFirst = state.withLock { state in
        state.waiting.append(Waiting(messages: messages, caller: caller))
        defer { state.isPosting = true }
        return !state.isPosting
      }
      if isFirst { Task { await self.postWaiting(to: replica) } }
    }.get()
  }

  private func postWaiting(to replica: any EngineReplica) async {
    while let group = next() {
      let messages = group.flatMap(\.messages)
      let result: Result<PostedRecord, EngineError>
      do throws(EngineError) {
        result = .success(
          try await commits.run(during: "publishing") { db in
            try DatabaseSize.requireSpace(db)
            return try replica.post(messages, in: db)
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
      var byteCount = 0
      for waiting in state.waiting {
        if count > 0, byteCount >= CommitGroup.maximumByteCount { break }
        if count == CommitGroup.maximumOperationCount { break }
        count += 1
        byteCount += waiting.messages.reduce(0) { $0 + $1.byteCount }
      }
      let group = Array(state.waiting.prefix(count))
      state.waiting.removeFirst(count)
      if group.isEmpty { state.isPosting = false }
      return group.isEmpty ? nil : group
    }
  }
}
