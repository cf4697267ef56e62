package import GRDB
internal import Synchronization

/// Where the changes of an engine go whose database is one of several: through the log that all of them apply.
///
/// A call returns when the change is applied here. See `docs/explanation/replication.md`.
package protocol EngineReplica: AnyObject, Sendable {
  /// Writes what a transaction publishes into the outbox, in that transaction.
  ///
  /// - Parameter callers: how many will ask for its ``places(of:)``.
  func post(_ messages: [Message], for callers: Int, in db: Database) throws -> PostedRecord

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

  /// The longest lease that a receiver can ask for.
  var longestLease: Duration { get }

  /// Whether retention runs here: at one of the nodes.
  var sweeps: Bool { get }

  /// Whether what this node knows of the log is new enough to decide about access.
  var isCurrent: Bool { get }

  /// What this home has undone, the oldest first: what was read of the tables before must be read again.
  func undone(in db: Database) throws -> [UndoneRange]

  /// What other nodes have undone: a reader that comes from one of them must read it again.
  func repaired(in db: Database) throws -> [PlaceRange]
}

/// Places of the log that were given out and then undone, because brokers forgot their records: other messages can
/// have them since.
package struct PlaceRange: Sendable, Hashable {
  /// The last place that was not undone.
  package let after: Timetoken
  package let through: Timetoken

  package init(after: Timetoken, through: Timetoken) {
    self.after = after
    self.through = through
  }

  /// Whether a reader that has seen everything up to a place must read the range again.
  package func affects(_ place: Timetoken) -> Bool {
    // Events that are not stored have places up to the next multiple of 100 after that of a message.
    place > after && place.rawValue / 100 * 100 <= through.rawValue
  }
}

/// What a home has undone itself.
package struct UndoneRange: Sendable, Hashable {
  /// Counts the undoings of this home.
  package let number: Int64
  package let places: PlaceRange

  package init(number: Int64, places: PlaceRange) {
    self.number = number
    self.places = places
  }
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
    if let refusal = stateStore.refusal { throw .notRunning(refusal) }
    throw EngineError(
      .replicated, "the home is one of several: only the server that replicates it can change it",
      hint: "use a client of datavaultd serve, or read only")
  }

  /// As ``EngineReplica/longestLease``; 366 days on a home that is the only one.
  package var longestLease: Duration {
    attachedReplica.withLock(\.self)?.longestLease ?? EngineConfiguration.maximumLeaseDuration
  }

  /// As ``EngineReplica/sweeps``; always on a home that is the only one.
  package var sweeps: Bool { attachedReplica.withLock(\.self)?.sweeps ?? !isReplicated }

  /// Whether this process knows enough of the log to decide about access; always on a home that is the only one.
  package var isCurrent: Bool { attachedReplica.withLock(\.self)?.isCurrent ?? !isReplicated }

  /// As ``EngineReplica/undone(in:)``; nothing on a home that is the only one.
  package func undone(in db: Database) throws -> [UndoneRange] {
    try attachedReplica.withLock(\.self)?.undone(in: db) ?? []
  }

  /// As ``EngineReplica/repaired(in:)``; nothing on a home that is the only one.
  package func repaired(in db: Database) throws -> [PlaceRange] {
    try attachedReplica.withLock(\.self)?.repaired(in: db) ?? []
  }

  /// Throws unless the home is the only one, for what no log can carry.
  func requireOnlyHome(during operation: String, hint: String) throws(EngineError) {
    if isReplicated {
      throw EngineError(
        .replicated, "\(operation) is not possible on a home that is one of several", hint: hint)
    }
  }
}
