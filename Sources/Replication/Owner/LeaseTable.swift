/// The leases of an owner, in memory: a process that ends ends its epoch with them.
package struct LeaseTable: Sendable {
  /// A message and its consumer.
  package struct Key: Sendable, Hashable {
    package let consumer: String
    package let message: MessageOrigin

    package init(consumer: String, message: MessageOrigin) {
      self.consumer = consumer
      self.message = message
    }
  }

  /// A message that a consumer is not done with, in the order of the log.
  package struct Candidate: Sendable, Hashable {
    package let message: MessageOrigin
    package let orderingKey: String?

    package init(message: MessageOrigin, orderingKey: String?) {
      self.message = message
      self.orderingKey = orderingKey
    }
  }

  package struct Held: Sendable, Hashable {
    package let key: Key
    package let lease: LeaseID
    package let orderingKey: String?
    package fileprivate(set) var until: Duration
    /// The settlement that is under way.
    package fileprivate(set) var settlement: RecordNumber?
  }

  /// What to do for a worker that settles.
  package enum Decision: Sendable, Hashable {
    /// Write the settlement, then call ``LeaseTable/begin(_:as:)``.
    case write(Key)
    /// It is under way: answer when this record is read back.
    case wait(RecordNumber)
    /// This lease is not known here: the tables tell whether it has settled.
    case unknown
  }

  private struct OrderingSlot: Hashable {
    let consumer: String
    let key: String
  }

  private var held: [Key: Held] = [:]
  private var keys: [LeaseID: Key] = [:]
  private var ordering: [OrderingSlot: Int] = [:]
  private let rules: SafetyRules

  package init(rules: SafetyRules = .all) { self.rules = rules }

  package var count: Int { held.count }

  /// Leases the first messages that can be leased.
  ///
  /// - Parameters:
  ///   - candidates: all that the consumer is not done with, the oldest first.
  ///   - until: when the leases end, on this node's clock.
  package mutating func lease(
    _ candidates: some Sequence<Candidate>, to consumer: String, most: Int, until: Duration,
    using random: inout some RandomNumberGenerator
  ) -> [Held] {
    var leased: [Held] = []
    var passed: Set<String> = []
    for candidate in candidates {
      if leased.count >= most { break }
      let key = Key(consumer: consumer, message: candidate.message)
      let isFree = isFree(key)
      if let orderingKey = candidate.orderingKey, rules.contains(.ordersKeys) {
        // Only the first message of a key that the consumer is not done with.
        guard passed.insert(orderingKey).inserted,
          ordering[OrderingSlot(consumer: consumer, key: orderingKey)] == nil
        else { continue }
      }
      guard isFree else { continue }
      let held = Held(
        key: key, lease: LeaseID(using: &random), orderingKey: candidate.orderingKey, until: until)
      insert(held)
      leased.append(held)
    }
    return leased
  }

  private func isFree(_ key: Key) -> Bool {
    guard let held = held[key] else { return true }
    return held.settlement != nil && !rules.contains(.blocksInFlight)
  }

  private mutating func insert(_ new: Held) {
    held[new.key] = new
    keys[new.lease] = new.key
    if let key = new.orderingKey {
      ordering[OrderingSlot(consumer: new.key.consumer, key: key), default: 0] += 1
    }
  }

  /// Decides about a settlement; a lease that has ended counts until its end is written.
  package func decide(_ lease: LeaseID) -> Decision {
    guard let key = keys[lease], let held = held[key], held.lease == lease else { return .unknown }
    return held.settlement.map { .wait($0) } ?? .write(key)
  }

  /// What a lease is of.
  package func key(of lease: LeaseID) -> Key? { keys[lease] }

  /// Whether a message waits, as it is leased, or another one with its ordering key is.
  package func isWaiting(_ key: Key, orderingKey: String?) -> Bool {
    if held[key] != nil { return true }
    guard let orderingKey else { return false }
    return ordering[OrderingSlot(consumer: key.consumer, key: orderingKey)] != nil
  }

  /// Notes that a settlement is in the outbox.
  ///
  /// Nothing if the lease is not held any more: its message can be another's by now.
  package mutating func begin(_ lease: LeaseID, as name: RecordNumber) {
    guard let key = keys[lease], held[key]?.lease == lease else { return }
    held[key]?.settlement = name
  }

  /// Changes the end of a lease.
  ///
  /// - Returns: false if it is not held any more, or has ended: its end is possibly being written.
  package mutating func extend(_ lease: LeaseID, until: Duration, now: Duration) -> Bool {
    guard let key = keys[lease], let found = held[key], found.lease == lease,
      found.settlement == nil, found.until > now
    else {
      return false
    }
    held[key]?.until = until
    return true
  }

  /// The leases that have ended without an answer: write a release for each, then call ``begin(_:as:)``.
  package func ended(_ now: Duration) -> [Held] {
    held.values.filter { $0.settlement == nil && $0.until <= now }.sorted { $0.lease < $1.lease }
  }

  /// A settlement was read back, whatever it came to: its message can be leased again unless the tables say no.
  package mutating func remove(_ lease: LeaseID) {
    guard let key = keys.removeValue(forKey: lease), let found = held[key], found.lease == lease
    else { return }
    held[key] = nil
    guard let orderingKey = found.orderingKey else { return }
    let slot = OrderingSlot(consumer: key.consumer, key: orderingKey)
    ordering[slot] = ordering[slot].flatMap { $0 > 1 ? $0 - 1 : nil }
  }

  /// The epoch has ended.
  package mutating func removeAll() {
    held = [:]
    keys = [:]
    ordering = [:]
  }
}
