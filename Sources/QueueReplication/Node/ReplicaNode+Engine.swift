internal import FileLayer
package import GRDB
package import MessagingQueue
internal import Replication
internal import Synchronization

/// What the engine asks for goes through the log: it returns when the record was read back and applied here.
extension ReplicaNode: EngineReplica {
  package var receiveInterval: Duration { configuration.receiveInterval }

  package var longestLease: Duration { configuration.ownership.longestLease }

  /// Whether sweeps run here: at the owner, so that each runs once.
  package var sweeps: Bool { state.withLock { $0.ownership.mayLease(now) } }

  /// Whether this node has read the log's end lately enough to decide about access.
  package var isCurrent: Bool {
    state.withLock { state in
      state.end == nil
        && state.caughtUpAt.map { now - $0 <= configuration.longestBlindness } ?? false
    }
  }

  package func undone(in db: Database) throws -> [UndoneRange] {
    try ReplicationSchema.undone(db)
  }

  package func readingPlace(_ place: Timetoken) -> Timetoken {
    let ranges = state.withLock { $0.view.values.repaired }
    return Timetoken(unchecked: ranges.reduce(place.rawValue) { $1.readingPlace($0) })
  }

  package func post(
    _ messages: [Message], isAwaited: Bool, in db: Database
  ) throws -> PostedRecord {
    try requireRunning()
    let name = try database.post(messages, in: db)
    db.afterNextTransaction { [results, outboxChanged] _ in
      if isAwaited { results.expect(name) }
      outboxChanged.set()
    }
    return PostedRecord(author: name.author.bytes, number: name.number)
  }

  package func places(of record: PostedRecord) async throws(EngineError) -> [Timetoken] {
    let name: RecordNumber
    do {
      name = RecordNumber(try AuthorID(decoding: record.author), record.number)
    } catch {
      throw EngineError(.invalidArgument, "a record's author has \(record.author.count) bytes")
    }
    switch try await result(of: name, during: Self.publishing) {
    case .places(let places): return places
    case .refused(let error): throw error
    case .operation, .settled, .conflict: throw Self.unknownOutcome(of: Self.publishing)
    }
  }

  package func perform(
    _ operation: QueueOperation
  ) async throws(EngineError) -> QueueOperation.Result {
    try requireRunning()
    let bytes = try await encode(operation)
    let names = try await write([.operation(bytes)]) { [results] in results.expect($0[0]) }
    switch try await result(of: names[0], during: "changing the queue") {
    case .operation(let result): return result
    case .refused(let error): throw error
    case .places, .settled, .conflict: throw Self.unknownOutcome(of: "changing the queue")
    }
  }

  package func change(_ rows: RowChanges) async throws(EngineError) {
    try requireRunning()
    let names = try await write([.rows(rows.bytes)]) { [results] in results.expect($0[0]) }
    switch try await result(of: names[0], during: "changing rows") {
    case .places: return
    case .conflict:
      throw EngineError(.busy, "the rows were changed at the same time", hint: "call it again")
    case .refused(let error): throw error
    case .operation, .settled: throw Self.unknownOutcome(of: "changing rows")
    }
  }

  private func encode(_ operation: QueueOperation) async throws(EngineError) -> [UInt8] {
    try await database.engine.access.read(during: "naming messages") { db in
      try operation.encoded { timetoken in
        let select = try EngineStatement(
          db, "SELECT origin FROM replication_origin WHERE timetoken = ?")
        return try select.first(timetoken.rawValue) { try MessageOrigin(decoding: $0.bytes(at: 0)) }
      }
    }
  }

  /// Waits until a record of this process is applied.
  func result(
    of name: RecordNumber, during operation: String
  ) async throws(EngineError) -> MessageTables.Result {
    guard let result = await results.result(of: name, until: now + configuration.patience) else {
      throw Self.unknownOutcome(of: operation)
    }
    return result
  }

  private static var publishing: String { "publishing" }

  static func unknownOutcome(of operation: String) -> EngineError {
    let step =
      operation == publishing
      ? "publish again with the same deduplication id" : "look whether it has before you repeat it"
    return EngineError(
      .outcomeUnknown,
      "\(operation): it is in the outbox, and was not read back while its caller waited",
      hint: "it takes effect when the brokers answer; \(step)")
  }
}
