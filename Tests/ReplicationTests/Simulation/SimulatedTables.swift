import Replication

/// The tables of messages and deliveries, simple and in memory, with a journal for undoing.
struct SimulatedTables: ReplicatedTables {
  struct Message: Equatable {
    let timetoken: Int64
    let origin: MessageOrigin
    let payload: Int
    let channel: String
    let orderingKey: String?
    var isRemoved = false
  }

  private struct Identity: Hashable {
    let channel: String
    let id: String
  }

  private enum Change {
    case appended
    case removed(Int)
    case delivery(LeaseTable.Key, DeliveryState?)
    case identity(Identity, Int64?)
    case limit(UInt8?)
    case share(AuthorID, [[UInt8]])
    case position(String, Int)
    case settled(LeaseID)
  }

  private struct Entry {
    let position: UInt64
    let changes: [Change]
    /// Nil if it was skipped.
    let record: SealedRecord?
  }

  static let consumers = ["work", "audit"]
  static let mostAttempts: UInt32 = 4
  /// The window of deduplication, in units of 100 ns: 30 seconds.
  static let window: Int64 = 300_000_000

  let rules: SafetyRules
  private(set) var messages: [Message] = []
  private(set) var deliveries: [LeaseTable.Key: DeliveryState] = [:]
  /// The settlements that counted, by their leases.
  private(set) var settled: [LeaseID: (kind: Settlement.Kind, key: LeaseTable.Key)] = [:]
  /// How many messages from the first on each consumer is done with.
  private(set) var positions: [String: Int] = [:]
  private var indexes: [MessageOrigin: Int] = [:]
  private var identities: [Identity: Int64] = [:]
  /// The most messages of the channel `bounded`.
  private var limit: UInt8?
  private var shares: [AuthorID: [[UInt8]]] = [:]
  private var counts: [String: Int] = [:]
  private var journal: ArraySlice<Entry> = []
  private var changes: [Change] = []
  /// The wall clock of the node, which only a broken rule looks at.
  var wallTime: Int64 = 0
  /// What a broken rule settles by: the timetokens that the owners saw.
  var leasedTimetokens: [LeaseID: Int64] = [:]

  init(rules: SafetyRules) { self.rules = rules }

  mutating func apply(
    _ record: Record, _ name: RecordNumber, at position: UInt64, in shard: ShardState,
    _ clock: inout TimetokenRule
  ) {
    switch record.body {
    case .commit(let published):
      for (index, message) in published.enumerated() {
        store(message, MessageOrigin(name, UInt32(index)), &clock)
      }
    case .settlement(let settlement): settle(settlement, shard.epoch?.epoch)
    case .operation(let bytes):
      switch SimulatedOperation(bytes) {
      case .purge(let through):
        guard let last = indexes[through] else { break }
        for index in messages.indices[...last] where messages[index].channel == "bounded" {
          remove(index)
        }
      case .limit(let most):
        changes.append(.limit(limit))
        limit = most
      }
    default: break
    }
  }

  mutating func keepShare(_ share: [UInt8], _ name: RecordNumber, at position: UInt64) {
    changes.append(.share(name.author, shares[name.author] ?? []))
    shares[name.author, default: []].append(share)
  }

  func shares(of author: AuthorID) -> [[UInt8]] { shares[author] ?? [] }

  mutating func dropShares(of author: AuthorID, at position: UInt64) {
    changes.append(.share(author, shares[author] ?? []))
    shares[author] = nil
  }

  mutating func keep(_ record: SealedRecord, _ element: Tail.Element) {
    journal.append(
      Entry(
        position: element.place.sequence, changes: changes,
        record: element.isApplied ? record : nil))
    changes = []
  }

  mutating func note(_ place: RecordPlace) {}

  /// The records that can still be undone: a database that is replaced hands them on.
  var tailRecords: [SealedRecord] { journal.compactMap(\.record) }

  private mutating func store(
    _ message: PublishedMessage, _ origin: MessageOrigin, _ clock: inout TimetokenRule
  ) {
    if let id = message.deduplicationID {
      let identity = Identity(channel: message.channel, id: id)
      let next = rules.contains(.deduplicatesByTimetoken) ? clock.next : wallTime
      if DeduplicationRule.isRepetition(of: identities[identity], next: next, window: Self.window) {
        return
      }
      changes.append(.identity(identity, identities[identity]))
      identities[identity] = clock.next
    }
    indexes[origin] = messages.count
    messages.append(
      Message(
        timetoken: clock.take(), origin: origin, payload: Payloads.number(message.content),
        channel: message.channel, orderingKey: message.orderingKey))
    changes.append(.appended)
    counts[message.channel, default: 0] += 1
    if message.channel == "bounded", let limit, counts["bounded", default: 0] > Int(limit),
      let oldest = messages.firstIndex(where: { $0.channel == message.channel && !$0.isRemoved })
    {
      remove(oldest)
    }
  }

  private mutating func remove(_ index: Int) {
    guard !messages[index].isRemoved else { return }
    messages[index].isRemoved = true
    counts[messages[index].channel, default: 0] -= 1
    changes.append(.removed(index))
  }

  private mutating func settle(_ settlement: Settlement, _ epoch: EpochID?) {
    var origin = settlement.message
    if !rules.contains(.namesByOrigin), let timetoken = leasedTimetokens[settlement.lease] {
      guard let found = messages.last(where: { $0.timetoken == timetoken }) else { return }
      origin = found.origin
    }
    guard let index = indexes[origin], !messages[index].isRemoved else { return }
    let key = LeaseTable.Key(consumer: settlement.consumer, message: origin)
    let decision = SettlementRule.decide(
      settlement, deliveries[key] ?? DeliveryState(), earlier: settled[settlement.lease]?.kind,
      epoch: epoch, mostAttempts: Self.mostAttempts, rules: rules)
    guard case .counts(let next) = decision else { return }
    changes.append(.settled(settlement.lease))
    settled[settlement.lease] = (settlement.outcome.kind, key)
    changes.append(.delivery(key, deliveries[key]))
    deliveries[key] = next
    let old = positions[settlement.consumer] ?? 0
    var position = old
    while position < messages.count, isDone(position, settlement.consumer) { position += 1 }
    if position != old {
      changes.append(.position(settlement.consumer, old))
      positions[settlement.consumer] = position
    }
  }

  private func isDone(_ index: Int, _ consumer: String) -> Bool {
    let key = LeaseTable.Key(consumer: consumer, message: messages[index].origin)
    return messages[index].isRemoved || deliveries[key]?.end != nil
  }

  /// Whether this settlement has counted.
  func hasCounted(_ settlement: Settlement) -> Bool {
    settled[settlement.lease]?.kind == settlement.outcome.kind
  }

  /// What a consumer is not done with, the oldest first.
  func candidates(for consumer: String, most: Int) -> [LeaseTable.Candidate] {
    var found: [LeaseTable.Candidate] = []
    for index in messages.indices[(positions[consumer] ?? 0)...] {
      if found.count >= most { break }
      guard !isDone(index, consumer) else { continue }
      found.append(
        LeaseTable.Candidate(
          message: messages[index].origin, orderingKey: messages[index].orderingKey))
    }
    return found
  }

  func message(_ origin: MessageOrigin) -> Message? { indexes[origin].map { messages[$0] } }

  /// Whether a position has passed a message that its consumer is not done with.
  var hasPassedUnsettled: Bool {
    positions.contains { consumer, position in
      messages.indices[..<position].contains { !isDone($0, consumer) }
    }
  }

  mutating func undo(after position: UInt64) -> [SealedRecord] {
    var undone: [SealedRecord] = []
    while let last = journal.last, last.position > position {
      journal.removeLast()
      for change in last.changes.reversed() { undo(change) }
      if let record = last.record { undone.append(record) }
    }
    return undone.reversed()
  }

  private mutating func undo(_ change: Change) {
    switch change {
    case .appended:
      let message = messages.removeLast()
      indexes[message.origin] = nil
      counts[message.channel, default: 0] -= 1
    case .removed(let index):
      messages[index].isRemoved = false
      counts[messages[index].channel, default: 0] += 1
    case .delivery(let key, let state): deliveries[key] = state
    case .identity(let identity, let timetoken): identities[identity] = timetoken
    case .limit(let earlier): limit = earlier
    case .settled(let lease): settled[lease] = nil
    case .share(let author, let earlier): shares[author] = earlier
    case .position(let consumer, let position): positions[consumer] = position == 0 ? nil : position
    }
  }

  mutating func release(through place: RecordPlace) {
    while let first = journal.first, first.position <= place.sequence { journal.removeFirst() }
    if journal.startIndex > 2 * journal.count + 64 { journal = ArraySlice(Array(journal)) }
  }
}

/// The content of a simulated message is the number of what was published.
enum Payloads {
  static func bytes(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  static func number(_ bytes: [UInt8]) -> Int {
    bytes.enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
  }
}

/// A change of the tables, as the simulation writes it; its channel is `bounded`.
enum SimulatedOperation {
  case purge(through: MessageOrigin)
  case limit(UInt8?)

  var body: Record.Body {
    switch self {
    case .purge(let origin): .operation(origin.bytes)
    case .limit(let most): .operation(most.map { [$0] } ?? [])
    }
  }

  init(_ bytes: [UInt8]) {
    if let origin = try? MessageOrigin(decoding: bytes) {
      self = .purge(through: origin)
    } else {
      self = .limit(bytes.first)
    }
  }
}

/// The rows of an outbox, in memory.
struct MemoryRows: OutboxRows {
  private var rows: [AuthorID: [SealedRecord]] = [:]
  private(set) var authors: [AuthorID] = []

  var isEmpty: Bool { rows.isEmpty }
  var count: Int { rows.values.reduce(0) { $0 + $1.count } }
  var oldestKey: UInt32? { rows.values.lazy.flatMap { $0 }.map(\.key).min() }

  func records(of author: AuthorID, after number: UInt64, most: Int) -> [SealedRecord] {
    guard let known = rows[author] else { return [] }
    let start = known.firstIndex { $0.name.number > number } ?? known.endIndex
    return Array(known[start...].prefix(most))
  }

  func firstNumber(of author: AuthorID) -> UInt64? { rows[author]?.first?.name.number }

  mutating func insert(_ records: [SealedRecord]) {
    for record in records {
      let author = record.name.author
      var known = rows[author] ?? []
      if rows[author] == nil { authors.append(author) }
      let index =
        known.last.map { $0.name.number < record.name.number } ?? true
        ? known.endIndex
        : known.firstIndex { $0.name.number >= record.name.number } ?? known.endIndex
      if index < known.endIndex, known[index].name == record.name { continue }
      known.insert(record, at: index)
      rows[author] = known
    }
  }

  mutating func remove(through name: RecordNumber) {
    guard var known = rows[name.author] else { return }
    known.removeAll { $0.name.number <= name.number }
    rows[name.author] = known.isEmpty ? nil : known
    if known.isEmpty { authors.removeAll { $0 == name.author } }
  }
}
