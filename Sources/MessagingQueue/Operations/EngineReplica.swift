package import GRDB
internal import Synchronization

/// Where the changes of an engine go whose database is one of several: through the log that all of them apply.
///
/// A call returns when the change is applied here. See `docs/explanation/replication.md`.
package protocol EngineReplica: AnyObject, Sendable {
  /// Writes what a transaction publishes into the outbox, in that transaction.
  func post(_ messages: [Message], in db: Database) throws -> PostedRecord

  /// Waits until a record is applied here.
  ///
  /// - Returns: the places of its messages, in their order.
  func places(of record: PostedRecord) async throws(EngineError) -> [Timetoken]

  /// Changes the queue.
  func perform(_ operation: QueueOperation) async throws(EngineError) -> QueueOperation.Result

  /// Changes rows of a server's tables, if they are as the changes expect.
  func change(_ rows: RowChanges) async throws(EngineError)

  /// Leases messages at the owner; it does not wait for messages.
  func receive(
    from channel: Channel, for consumer: Consumer, maximumCount: Int, lease: Duration
  ) async throws(EngineError) -> [Delivery]

  /// Settles at the owner.
  func settle(
    _ tokens: [LeaseToken], _ settlement: Settlement
  ) async throws(EngineError) -> Settlement.Outcome

  /// How long a receive that found nothing waits before it asks again.
  var receiveInterval: Duration { get }

  /// Whether retention runs here: at one of the nodes.
  var sweeps: Bool { get }

  /// Whether what this node knows of the log is new enough to decide about access.
  var isCurrent: Bool { get }

  /// How often this process has undone records: what was read of the tables before must be read again.
  var undoingCount: Int { get }

  /// Where a reader continues that has seen the log up to a place: not later, and earlier if its end was undone since.
  func readingPlace(_ place: Timetoken) -> Timetoken
}

/// A record in the outbox, by its author and number.
package struct PostedRecord: Sendable, Hashable {
  /// 16 bytes.
  package let author: [UInt8]
  package let number: UInt64

  package init(author: [UInt8], number: UInt64) {
    self.author = author
    self.number = number
  }
}

extension MessagingEngine {
  /// Whether the home is one of several.
  ///
  /// Then changes need a replica.
  package var isReplicated: Bool { tables.isReplicated }

  /// Sends changes through the log from now on.
  package func attach(_ replica: any EngineReplica) {
    attachedReplica.withLock { $0 = replica }
  }

  /// The replica of a home that is one of several; nil for any other home.
  ///
  /// - Throws: `replicated` if this process has none.
  package func replica() throws(EngineError) -> (any EngineReplica)? {
    guard isReplicated else { return nil }
    if let replica = attachedReplica.withLock({ $0 }) { return replica }
    throw EngineError(
      .replicated, "the home is one of several: only the server that replicates it can change it",
      hint: "use the server (datavaultd serve), or read only")
  }

  /// Whether this process knows enough of the log to decide about access; always on a home that is the only one.
  package var isCurrent: Bool { attachedReplica.withLock(\.self)?.isCurrent ?? !isReplicated }

  /// As ``EngineReplica/undoingCount``; 0 on a home that is the only one.
  package var undoingCount: Int { attachedReplica.withLock(\.self)?.undoingCount ?? 0 }

  /// As ``EngineReplica/readingPlace(_:)``; the place itself on a home that is the only one.
  package func readingPlace(_ place: Timetoken) -> Timetoken {
    attachedReplica.withLock(\.self)?.readingPlace(place) ?? place
  }

  /// How often a change of rows is tried that others have changed at the same time.
  private static let mostRowTries = 10

  /// Changes rows of a server's tables beside the engine's.
  ///
  /// On a home that is one of several, `body` only tries the change: its rows go through the log and are changed on all
  /// nodes, if no other node has changed the same rows before. Otherwise `body` runs again.
  ///
  /// - Parameters:
  ///   - tables: those that `body` changes; each has a primary key.
  ///   - body: as that of ``write(_:)``; it depends on nothing but the rows.
  /// - Throws: the errors of ``write(_:)``; `busy` after ten tries; `outcomeUnknown` if the log does not answer.
  package func changeRows<Value: Sendable>(
    in tables: Set<String>, _ body: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    guard let replica = try replica() else { return try await write(body) }
    for attempt in 1... {
      let (value, rows) = try await write { db in try Self.trying(db, tables, body) }
      if rows.bytes.isEmpty { return value }
      do throws(EngineError) {
        try await replica.change(rows)
        return value
      } catch {
        guard error.code == .busy, attempt < Self.mostRowTries else { throw error }
      }
    }
    preconditionFailure("the loop has no end")
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

  /// Throws unless the home is the only one, for what no log can carry.
  func requireOnlyHome(during operation: String, hint: String) throws(EngineError) {
    if isReplicated {
      throw EngineError(
        .replicated, "\(operation) is not possible on a home that is one of several", hint: hint)
    }
  }
}
