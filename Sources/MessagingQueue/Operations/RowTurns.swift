package import GRDB
internal import Synchronization

/// Lets one change of a server's rows go through the log at a time: two of one process would only meet each other.
final class RowTurns: Sendable {
  private typealias Caller = CheckedContinuation<Result<Void, EngineError>, Never>

  private struct State {
    var isTaken = false
    var waiting: [Caller] = []
  }

  private let state = Mutex(State())

  /// Runs `body` after those that came before.
  ///
  /// - Throws: `busy` if the log did not answer one of them: nothing was done then.
  func run<Value>(_ body: () async throws -> Value) async throws -> Value {
    try await withCheckedContinuation { (caller: Caller) in
      let isFirst = state.withLock { state in
        defer { state.isTaken = true }
        if state.isTaken { state.waiting.append(caller) }
        return !state.isTaken
      }
      if isFirst { caller.resume(returning: .success(())) }
    }.get()
    do {
      let value = try await body()
      next()
      return value
    } catch {
      if (error as? EngineError)?.code == .outcomeUnknown { refuseWaiting() }
      next()
      throw error
    }
  }

  private func next() {
    state.withLock { state -> Caller? in
      state.isTaken = !state.waiting.isEmpty
      return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
    }?.resume(returning: .success(()))
  }

  /// Each of them would wait as long for the log.
  private func refuseWaiting() {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    for caller in waiting {
      caller.resume(
        returning: .failure(
          EngineError(.busy, "the log does not answer", hint: "call it again later")))
    }
  }
}

extension MessagingEngine {
  /// How often a change of rows is tried that other nodes have changed at the same time.
  private static let mostRowTries = 10

  /// Changes rows of a server's tables beside the engine's.
  ///
  /// On a home that is one of several, `body` only tries the change: its rows go through the log and are changed on all
  /// nodes, if no other node has changed the same rows before. Otherwise `body` runs again.
  ///
  /// - Parameters:
  ///   - tables: those that `body` changes; each has a primary key.
  ///   - body: as that of ``write(_:)``, but it can run more than once.
  /// - Throws: the errors of ``write(_:)``; `busy` after ten tries; `outcomeUnknown` if the log does not answer: the
  ///   change is in the outbox then, and takes effect later if its rows are as they were.
  package func changeRows<Value: Sendable>(
    in tables: Set<String>, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    guard let replica = try replica() else { return try await write(body) }
    return try await rowTurns.run {
      for attempt in 1... {
        let (value, rows) = try await write { db in try Self.trying(db, tables, body) }
        if rows.bytes.isEmpty { return value }
        do throws(EngineError) {
          try await replica.change(rows)
          return value
        } catch {
          guard error.code == .busy, attempt < Self.mostRowTries else { throw error }
        }
        // The others need their turns too.
        try? await Task.sleep(for: .milliseconds(Int.random(in: 0..<10 * attempt)))
      }
      preconditionFailure("the loop has no end")
    }
  }

  /// What `body` changes, undone.
  private static func trying<Value>(
    _ db: Database, _ tables: Set<String>, _ body: (Database) throws -> Value
  ) throws -> (Value, RowChanges) {
    var tried: (Value, RowChanges)?
    try db.inSavepoint {
      let recorder = try RowRecorder(db, tables: tables)
      let value = try body(db)
      tried = (value, try recorder.finish())
      return .rollback
    }
    guard let tried else { throw EngineError(.inputOutput, "changing rows: no result") }
    return tried
  }
}
