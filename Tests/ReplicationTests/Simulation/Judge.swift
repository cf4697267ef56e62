import Replication

/// Knows what was acknowledged, and how, and finds what breaks a promise.
///
/// It is slow and obvious: it looks into every place that a record can be in.
struct Judge {
  enum Acknowledgement { case local, replicated, repeated }

  struct Publication {
    let payload: Int
    let node: Int
    let diskNumber: Int
    let channel: String
    let orderingKey: String?
    /// Its place among what was published with this key.
    let counter: Int
    let deduplicationID: String?
    var acknowledgement: Acknowledgement?
    /// Every copy was on a disk that was lost, or was forgotten after the author's disk was lost.
    var isDestroyed = false
    /// Its disk lost it in a power cut, before its caller had an answer: it can be on the way, and come late.
    var isForgotten = false
  }

  struct Grant {
    let lease: LeaseID
    let key: LeaseTable.Key
    let payload: Int
    let orderingKey: String?
    let worker: Int
    let until: Int64
    var isOver = false
  }

  private(set) var violations: [String] = []
  var publications: [Int: Publication] = [:]
  private var grants: [LeaseID: Grant] = [:]
  private var latest: [LeaseTable.Key: LeaseID] = [:]
  private var live: Set<LeaseID> = []
  /// Settlements that some node has seen count, by lease.
  private var counted: [LeaseID: Settlement.Outcome] = [:]
  private var settledRecords: Set<RecordNumber> = []
  /// Messages that a consumer is done with, by key and counter.
  private var ended: [String: Set<Int>] = [:]
  private var done: [LeaseID: Settlement] = [:]
  private var refused: Set<LeaseID> = []
  /// Settlements that a broker has forgotten: they can be undone.
  var forgottenLeases: Set<LeaseID> = []
  private(set) var settledCount = 0
  private(set) var leaseCount = 0

  mutating func fail(_ violation: String) { violations.append(violation) }

  // MARK: Leases

  mutating func note(_ grant: Grant, now: Int64) {
    leaseCount += 1
    for other in live {
      guard let earlier = grants[other] else { continue }
      if earlier.isOver || earlier.until <= now {
        live.remove(other)
        continue
      }
      if earlier.key.consumer != grant.key.consumer { continue }
      if earlier.key == grant.key {
        fail("leased to two: \(grant.payload)")
      } else if let key = grant.orderingKey, key == earlier.orderingKey {
        fail("ordering key leased twice: \(key)")
      }
    }
    grants[grant.lease] = grant
    latest[grant.key] = grant.lease
    live.insert(grant.lease)
  }

  /// A node has applied a settlement that counted.
  mutating func noteCounted(_ settlement: Settlement, _ name: RecordNumber, end: DeliveryState.End?)
  {
    guard settledRecords.insert(name).inserted else { return }
    grants[settlement.lease]?.isOver = true
    guard let grant = grants[settlement.lease] else { return fail("a settlement without a lease") }
    if latest[grant.key] != settlement.lease { fail("a late worker settled \(grant.payload)") }
    counted[settlement.lease] = settlement.outcome
    guard end != nil, let key = grant.orderingKey, let publication = publications[grant.payload]
    else { return }
    let counter = publication.counter
    let slot = "\(settlement.consumer) \(key)"
    for earlier in publications.values
    where earlier.orderingKey == key && earlier.counter < counter && !earlier.isDestroyed
      && earlier.diskNumber == publication.diskNumber
      && earlier.acknowledgement != nil && ended[slot]?.contains(earlier.counter) != true
    {
      fail("ordering key \(key): \(counter) was settled before \(earlier.counter)")
    }
    ended[slot, default: []].insert(counter)
  }

  /// A worker was told that its settlement is done.
  mutating func noteDone(_ settlement: Settlement) {
    settledCount += 1
    done[settlement.lease] = settlement
  }

  /// A worker was told that its lease is another's.
  mutating func noteRefused(_ settlement: Settlement) {
    if counted[settlement.lease]?.kind == settlement.outcome.kind,
      !forgottenLeases.contains(settlement.lease)
    {
      fail("refused, although it counts")
    }
  }

  // MARK: What is lost

  /// Something was destroyed: what exists nowhere any more, and was promised only as long as that lives, is excused.
  mutating func noteDestruction(_ world: Simulation) {
    var found: Set<RecordNumber> = []
    for node in world.nodes {
      for author in node.disk.outbox.rows.authors {
        for record in node.disk.outbox.rows.records(of: author, after: 0, most: .max) {
          found.insert(record.name)
        }
      }
    }
    // A record in the log whose predecessor died with its author's disk is skipped for ever.
    var last: [AuthorID: UInt64] = [:]
    let furthest =
      world.nodes.map(\.disk.applier.state).max { $0.position < $1.position } ?? ShardState()
    func known(_ author: AuthorID) -> UInt64 { last[author] ?? furthest.lastNumber(of: author) }
    for entry in world.broker.stored.map(\.entry) where entry.sequence > furthest.position {
      let record = entry.record
      let author = record.name.author
      let follows = world.part(of: record)?.follows
      let waits = follows.map { known($0.author) < $0.number } ?? false
      if record.name.number == known(author) + 1, !waits { last[author] = record.name.number }
      if record.name.number <= known(author) { found.insert(record.name) }
    }
    var payloads: Set<Int> = []
    for node in world.nodes where !node.isJoining {
      payloads.formUnion(node.disk.tables.messages.map(\.payload))
    }
    for name in found { payloads.formUnion(world.payloads[name] ?? []) }
    for (payload, publication) in publications where !payloads.contains(payload) {
      let isAuthorsDiskGone = world.nodes[publication.node].diskNumber != publication.diskNumber
      if isAuthorsDiskGone { publications[payload]?.isDestroyed = true }
    }
  }

  // MARK: The end

  /// Compares all nodes, after everything has come to rest.
  mutating func finish(_ world: Simulation) {
    guard let first = world.nodes.first(where: { !$0.isJoining }) else { return }
    for node in world.nodes where !node.isJoining {
      let label = "node \(node.index)"
      if node.disk.applier.state.position != first.disk.applier.state.position {
        fail(
          "\(label) is stuck at \(node.disk.applier.state.position), the log ends at \(world.broker.last)"
        )
        continue
      }
      if node.disk.applier.state.values != first.disk.applier.state.values {
        fail("\(label) differs in the log's state")
      }
      if node.disk.applier.state.members != first.disk.applier.state.members {
        fail("\(label) differs in members")
      }
      if node.disk.tables.messages != first.disk.tables.messages {
        fail("\(label) differs in messages")
      }
      if node.disk.tables.deliveries != first.disk.tables.deliveries {
        fail("\(label) differs in deliveries")
      }
      if node.disk.tables.positions != first.disk.tables.positions {
        fail("\(label) differs in positions")
      }
      if node.disk.tables.hasPassedUnsettled {
        fail("\(label): a position has passed an unsettled message")
      }
      let missed = node.disk.tables.messages.filter {
        !$0.isRemoved && world.seen[node.index]?.contains($0.payload) != true
      }
      if !missed.isEmpty { fail("a reader of \(label) missed \(missed.map(\.payload).prefix(5))") }
    }
    let messages = first.disk.tables.messages
    var times: [Int: Int64] = [:]
    var stored: Set<Int> = []
    for message in messages {
      let window =
        publications[message.payload]?.deduplicationID == nil ? Int64.max : SimulatedTables.window
      if let earlier = times[message.payload], message.timetoken - earlier <= window {
        fail("twice: \(message.payload)")
      }
      times[message.payload] = message.timetoken
      stored.insert(message.payload)
    }
    if zip(messages, messages.dropFirst()).contains(where: { $0.timetoken + 100 > $1.timetoken }) {
      fail("timetokens do not rise")
    }
    // A restored disk does not know what its earlier self had on the way.
    var counters: [String: Int] = [:]
    for message in messages {
      guard let key = message.orderingKey, let publication = publications[message.payload],
        !publication.isForgotten
      else { continue }
      let slot = "\(key) \(publication.diskNumber)"
      if let earlier = counters[slot], publication.counter <= earlier {
        fail("order of \(key): \(publication.counter) after \(earlier)")
      }
      counters[slot] = publication.counter
    }
    for publication in publications.values
    where publication.acknowledgement != nil && !publication.isDestroyed
      && !stored.contains(publication.payload)
    {
      fail(
        "lost: \(publication.payload), acknowledged as \(publication.acknowledgement.map { "\($0)" } ?? "")"
      )
    }
    for (lease, (_, key)) in first.disk.tables.settled where grants[lease]?.key != key {
      fail("\(key.message.record.number) was settled by the lease of another message")
    }
    for settlement in done.values where !forgottenLeases.contains(settlement.lease) {
      let key = LeaseTable.Key(consumer: settlement.consumer, message: settlement.message)
      let state = first.disk.tables.deliveries[key]
      let hasEnded =
        switch settlement.outcome {
        case .acknowledged: state?.end == .acknowledged
        case .rejected: state?.end == .dead
        case .released, .leaseEnded: true
        }
      if !hasEnded || !first.disk.tables.hasCounted(settlement),
        first.disk.tables.message(settlement.message)?.isRemoved != true
      {
        fail(
          "a settlement that was answered with done is lost: \(settlement.outcome) \(String(describing: state))"
        )
      }
    }
  }
}
