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

  /// Whether this node knows the log lately enough to decide about access.
  package var isCurrent: Bool {
    state.withLock { state in
      state.end == nil
        && state.horizon.time.map { now - $0 <= configuration.longestBlindness } ?? false
    }
  }

  package func undone(in db: Database) throws -> [UndoneRange] {
    try ReplicationSchema.undone(db)
  }

  package func repaired(in db: Database) throws -> [PlaceRange] {
    try StoredState.values(db).repaired.map(PlaceRange.init)
  }

  package func post(
    _ messages: [Message], for callers: Int, in db: Database
  ) throws -> PostedRecord {
    try requireRunning()
    let name = try database.post(messages, in: db)
    db.afterNextTransaction { [results, outboxChanged, configuration] _ in
      if callers > 0 {
        results.expect(name, by: callers)
        outboxChanged.set()
      } else {
        outboxChanged.set(after: configuration.gatheringTime)
      }
    }
    return PostedRecord(name)
  }

  package func places(of record: PostedRecord) async throws(EngineError) -> [Timetoken] {
    try await result(of: record.name(), during: Self.publishing).places()
  }

  package func perform(
    _ operation: QueueOperation
  ) async throws(EngineError) -> QueueOperation.Result {
    try await result(of: database.body(of: operation), during: "changing the queue").operation()
  }

  package func change(_ rows: RowChanges) async throws(EngineError) {
    _ = try await result(of: .rows(rows.bytes), during: "changing rows").places()
  }

  /// Writes a record, and waits until it is applied.
  private func result(
    of body: Record.Body, during operation: String
  ) async throws(EngineError) -> RecordResult {
    try requireRunning()
    let names = try await write([body]) { [results] in results.expect($0[0]) }
    return try await result(of: names[0], during: operation)
  }

  /// Waits until a record of this process is applied.
  func result(
    of name: RecordNumber, during operation: String
  ) async throws(EngineError) -> RecordResult {
    guard let result = await results.result(of: name, until: now + configuration.patience) else {
      guard let cause = state.withLock(\.unapplied) else {
        throw Self.unknownOutcome(of: operation)
      }
      throw Self.unknownOutcome(
        of: operation, "cannot be applied here: \(cause.message)", because: cause)
    }
    return result
  }

  static var publishing: String { "publishing" }

  /// - Parameters:
  ///   - reason: why the outcome is unknown. Default: its caller waited too long.
  ///   - cause: an error that has led to it. Default: nil, none.
  static func unknownOutcome(
    of operation: String, _ reason: String = "it was not read back while its caller waited",
    because cause: EngineError? = nil
  ) -> EngineError {
    let step =
      operation == publishing
      ? "publish again with the same deduplication id" : "look whether it has before you repeat it"
    return EngineError(
      .outcomeUnknown, "\(operation): it is in the outbox, and \(reason)",
      hint: (cause?.hint.map { "\($0); " } ?? "")
        + "it takes effect when the brokers answer; \(step)", underlying: cause)
  }
}

extension PostedRecord {
  init(_ name: RecordNumber) { self.init(author: name.author.bytes, number: name.number) }

  /// - Throws: `invalidArgument` if no outbox has given it.
  func name() throws(EngineError) -> RecordNumber {
    do {
      return RecordNumber(try AuthorID(decoding: author), number)
    } catch {
      throw EngineError(.invalidArgument, "a record's author has \(author.count) bytes")
    }
  }
}
