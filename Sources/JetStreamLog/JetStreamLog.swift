internal import CNATS
internal import Glibc
package import Logging
package import Replication
internal import Synchronization

/// The log of a shard in a stream of NATS JetStream, and the requests between its members.
///
/// It connects when it is first used, and again by itself. It never creates a stream: ``provision(replicas:)`` does.
/// See `docs/explanation/replication.md`, "Brokers".
package final class JetStreamLog: ReplicatedLog, MemberExchange {
  package let names: ShardNames
  let settings: BrokerSettings
  private let user: BrokerUser?
  private let now: @Sendable () -> Duration
  let logger: Logger
  let connecting = Mutex(Connecting())
  /// What only the thread that reads uses.
  private let reading = Mutex(Reading())
  let exchange = RequestReplies()
  private let refusals: RefusalLog

  struct Connecting: Sendable {
    var connection: BrokerConnection?
    /// How often the connection had been lost when the stream was looked at; nil before.
    var checkedAt: UInt64?
    var isClosed = false
  }

  /// How often the leader is asked for the end of the stream at least: a consumer can lag behind that without a sign.
  private static let endInterval = Duration.milliseconds(250)

  private struct Reading: ~Copyable {
    var reader: StreamReader?
    var inbox: ReaderInbox?
    /// When the brokers are asked for a consumer again, after they made none.
    var asksAgainAt: Duration = .zero
    /// The first record that the stream had when that was last asked.
    var first: UInt64 = 1
    /// When the stream's leader is asked for its end again, although a consumer brings records.
    var asksEndAt: Duration = .zero

    /// The inbox of a connection, which all its readers use.
    mutating func inbox(
      of connection: BrokerConnection, _ names: ShardNames
    ) throws(LogError) -> ReaderInbox {
      if let inbox, inbox.connection === connection { return inbox }
      let made = try ReaderInbox(connection, names)
      inbox = made
      return made
    }
  }

  /// - Parameters:
  ///   - user: the nkey with which the node logs in; nil for brokers that ask for none.
  ///   - now: the boot clock.
  /// - Throws: `CryptoError` if OpenSSL failed.
  package init(
    _ settings: BrokerSettings, ring: borrowing KeyRing, user: consuming NATSUserKey?,
    now: @escaping @Sendable () -> Duration, logger: Logger
  ) throws {
    self.settings = settings
    names = try ShardNames(ring)
    self.user = Self.user(user)
    self.now = now
    self.logger = logger
    refusals = RefusalLog(logger)
  }

  private static func user(_ key: consuming NATSUserKey?) -> BrokerUser? {
    switch consume key {
    case .some(let key): BrokerUser(key)
    case .none: nil
    }
  }

  /// Connects, unless it is connected, and checks the stream.
  ///
  /// - Throws: ``LogError``.
  package func connect() throws(LogError) { _ = try stream() }

  /// Creates the stream of the shard: an act of an operator.
  ///
  /// - Parameter replicas: the brokers that keep it: 1, 3 or 5.
  /// - Throws: `streamExists`; the errors of connecting.
  package func provision(replicas: Int) throws(LogError) {
    try ShardStream(connection: connection(), names: names).create(replicas: replicas)
  }

  /// Ends the connection; calls under way return with an error.
  package func close() {
    let connection = connecting.withLock { state in
      state.isClosed = true
      return state.connection.take()
    }
    exchange.close()
    connection?.close()
  }

  /// The connection, without a look at the stream.
  func connection() throws(LogError) -> BrokerConnection {
    try connecting.withLock { (state) throws(LogError) in try Self.connection(self, &state) }
  }

  /// The stream, checked after each loss of the connection.
  func stream() throws(LogError) -> ShardStream {
    try connecting.withLock { (state) throws(LogError) in
      let connection = try Self.connection(self, &state)
      let stream = ShardStream(connection: connection, names: names)
      let count = try connection.reconnectCount()
      if state.checkedAt != count {
        try stream.require()
        if state.checkedAt == nil {
          try exchange.attach(to: connection, names) { [refusals] in refusals.note($0) }
        }
        state.checkedAt = count
      }
      return stream
    }
  }

  private static func connection(
    _ log: JetStreamLog, _ state: inout Connecting
  ) throws(LogError) -> BrokerConnection {
    if state.isClosed { throw .closed }
    if let connection = state.connection, !connection.isClosed { return connection }
    state.checkedAt = nil
    state.connection = nil
    let connection = try BrokerConnection.open(
      log.settings, user: log.user, inboxes: log.names.inboxes, logger: log.logger)
    state.connection = connection
    return connection
  }

  // MARK: - The log

  package func append(_ records: [SealedRecord]) throws {
    let stream = try stream()
    let answers = exchange.inboxOfAppends
    for record in records {
      try stream.connection.publish(record.bytes, to: names.records, reply: answers)
    }
  }

  package func read(at place: UInt64, mostBytes: Int, wait: Duration) throws -> Applier.Batch {
    let stream = try stream()
    return try reading.withLock { state in
      try read(stream, &state, at: place, mostBytes: mostBytes, wait: wait)
    }
  }

  private func read(
    _ stream: ShardStream, _ state: inout Reading, at place: UInt64, mostBytes: Int, wait: Duration
  ) throws(LogError) -> Applier.Batch {
    guard place < .max - 1 else { throw LogError(.noAnswer, "no record can have this place") }
    try prepareReader(stream, &state, at: place)
    var entries: [LogEntry] = []
    if let reader = state.reader {
      do throws(LogError) {
        entries = try reader.read(mostBytes: mostBytes, wait: wait)
      } catch {
        state.reader = nil
        throw error
      }
    }
    var hasGap = entries.first.map { $0.sequence > place + 1 } ?? false
    if entries.isEmpty || hasGap {
      // The consumer's replica can lack what the leader has.
      let missed = try missed(
        stream, after: place, mostBytes, wait: state.reader == nil ? wait : .zero)
      if !missed.isEmpty {
        state.reader = nil
        entries = missed
        hasGap = false
      }
    }
    // What came was in the stream before this moment. What is at the place is asked after it.
    let sentAt = now()
    let found = place > 0 ? try stream.entry(at: place) : nil
    var last = (entries.last?.sequence ?? place).addingClamped(state.reader?.pending ?? 0)
    let needsEnd = entries.isEmpty || hasGap || state.reader == nil || (place > 0 && found == nil)
    var isEndKnown = false
    if needsEnd || sentAt >= state.asksEndAt {
      state.asksEndAt = sentAt + Self.endInterval
      do throws(LogError) {
        let extent = try stream.extent(isQuick: !needsEnd)
        state.first = extent.first
        last = extent.last
        isEndKnown = true
      } catch {
        if needsEnd { throw error }
      }
    }
    if let found { entries.insert(found, at: 0) }
    return Applier.Batch(
      first: found == nil ? state.first : min(state.first, place), last: last,
      isEndKnown: isEndKnown, entries: entries, sentAt: sentAt, receivedAt: now())
  }

  /// Has a reader that goes on at a place, unless the brokers make no consumer now: their leader for that can be ill, and
  /// the stream's leader well.
  private func prepareReader(
    _ stream: ShardStream, _ state: inout Reading, at place: UInt64
  ) throws(LogError) {
    if state.reader?.continues(place, over: stream.connection) == true { return }
    state.reader = nil
    guard now() >= state.asksAgainAt else { return }
    do throws(LogError) {
      let inbox = try state.inbox(of: stream.connection, names)
      state.reader = try StreamReader(inbox, names, from: place + 1)
    } catch {
      guard error.code == .noAnswer else { throw error }
      logger.warning("the brokers make no consumer, and the stream's leader is read: \(error)")
      state.asksAgainAt = now() + .seconds(10)
    }
  }

  /// The records that the leader has behind a place.
  ///
  /// - Parameter wait: how long it asks for the first one.
  private func missed(
    _ stream: ShardStream, after place: UInt64, _ mostBytes: Int, wait: Duration
  ) throws(LogError) -> [LogEntry] {
    let end = now() + wait
    while true {
      let entries = try stream.entries(after: place, mostBytes: mostBytes)
      if !entries.isEmpty || now() >= end { return entries }
      usleep(20_000)
    }
  }

  package func trim(through position: UInt64) throws {
    try stream().trim(through: position)
  }
}

extension UInt64 {
  /// The sum, or the greatest value: brokers can say any number.
  fileprivate func addingClamped(_ other: UInt64) -> UInt64 {
    let (sum, isOver) = addingReportingOverflow(other)
    return isOver ? .max : sum
  }
}
