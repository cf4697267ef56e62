import MessagingQueue

/// The simplest model of a queue: a list of all messages, and each consumer with a state for each
/// of them.
///
/// A receive looks at all of them.
struct QueueModel {
  struct Entry {
    let timetoken: Timetoken
    let text: String
    var priority = 4
    var key: String?
    /// Seconds of the test's clock; it never goes back.
    var due = 0
    var expires = Int.max
  }

  struct Record {
    enum Phase: Equatable {
      case waiting
      case leased(until: Int)
      case released(until: Int)
      case over
      case done
      case dead
    }
    var phase = Phase.waiting
    var attempts = 0
    /// The lease that still settles the message.
    var token: LeaseToken?
  }

  struct Reader {
    var maximumAttempts: Int?
    var records: [Timetoken: Record] = [:]
  }

  var log: [Entry] = []
  var readers: [Consumer: Reader] = [:]
  var now = 0
  private var known: [String: (first: Timetoken, until: Int)] = [:]

  /// How many seconds an id is remembered.
  static let window = 25

  mutating func receive(
    _ consumer: Consumer, count: Int, lease: Int
  ) -> [(entry: Entry, attempt: Int)] {
    var reader = readers[consumer] ?? Reader()
    for (timetoken, record) in reader.records {
      switch record.phase {
      case .leased(let until) where until <= now:
        let isDead = record.attempts >= reader.maximumAttempts ?? .max
        reader.records[timetoken]?.phase = isDead ? .dead : .over
        if isDead { reader.records[timetoken]?.token = nil }
      case .released(let until) where until <= now:
        reader.records[timetoken]?.phase = .waiting
      default: break
      }
    }
    var taken: [(entry: Entry, attempt: Int)] = []
    for entry in log.sorted(by: { ($1.priority, $0.timetoken) < ($0.priority, $1.timetoken) }) {
      if taken.count == count { break }
      var record = reader.records[entry.timetoken] ?? Record()
      guard record.phase == .waiting || record.phase == .over else { continue }
      // A lease that has ended counts until its message's turn.
      if record.phase == .over, mustWait(entry, reader) { continue }
      if entry.expires <= now {
        record.phase = .done
        record.token = nil
        reader.records[entry.timetoken] = record
        continue
      }
      if entry.due > now && record.attempts == 0 { continue }
      if mustWait(entry, reader) { continue }
      record.phase = .leased(until: now + lease)
      record.attempts += 1
      reader.records[entry.timetoken] = record
      taken.append((entry, record.attempts))
    }
    readers[consumer] = reader
    forget()
    return taken
  }

  /// Whether an earlier message of the key is ready, or any is leased.
  private func mustWait(_ entry: Entry, _ reader: Reader) -> Bool {
    guard let key = entry.key else { return false }
    return log.contains { other in
      guard other.key == key, other.timetoken != entry.timetoken else { return false }
      let record = reader.records[other.timetoken] ?? Record()
      switch record.phase {
      case .leased: return true
      case .waiting, .over:
        let isDelayed = other.due > now && record.attempts == 0
        return other.timetoken < entry.timetoken && !isDelayed && other.expires > now
      case .released, .done, .dead: return false
      }
    }
  }

  /// Removes messages that every reader has settled from the log.
  mutating func forget() {
    if readers.isEmpty { return }
    log.removeAll { entry in
      readers.values.allSatisfy { $0.records[entry.timetoken]?.phase == .done }
    }
  }

  /// The delivery that a token still settles.
  func holder(of token: LeaseToken) -> (Consumer, Timetoken)? {
    for (consumer, reader) in readers {
      for (timetoken, record) in reader.records where record.token == token {
        return (consumer, timetoken)
      }
    }
    return nil
  }

  mutating func settle(
    _ token: LeaseToken, evenIfOver: Bool, _ change: (inout Record, Int?) -> Void
  ) -> Bool {
    guard let (consumer, timetoken) = holder(of: token) else { return false }
    guard var record = readers[consumer]?.records[timetoken] else { return false }
    if !evenIfOver {
      guard case .leased(let until) = record.phase, until > now else { return false }
    }
    change(&record, readers[consumer]?.maximumAttempts)
    readers[consumer]?.records[timetoken] = record
    forget()
    return true
  }

  /// Adds a message, unless its id is known.
  ///
  /// - Returns: whether it has the expected timetoken.
  mutating func publish(_ entry: Entry, id: String?) -> Bool {
    if let id, let known = known[id], known.until > now { return known.first == entry.timetoken }
    if let id { known[id] = (entry.timetoken, now + Self.window) }
    defer { log.append(entry) }
    return log.allSatisfy { $0.timetoken < entry.timetoken }
  }

  /// - Returns: how many messages were removed.
  mutating func purge(before end: Timetoken?) -> Int {
    let gone = log.filter { entry in end.map { entry.timetoken < $0 } ?? true }
    for entry in gone {
      for consumer in readers.keys { readers[consumer]?.records[entry.timetoken] = nil }
    }
    let timetokens = Set(gone.map(\.timetoken))
    log.removeAll { timetokens.contains($0.timetoken) }
    return gone.count
  }

  /// - Returns: whether the consumer existed.
  mutating func remove(_ consumer: Consumer) -> Bool {
    defer { forget() }
    return readers.removeValue(forKey: consumer) != nil
  }

  /// - Returns: how many were returned.
  mutating func redrive(_ consumer: Consumer) -> Int {
    endDeath(of: consumer, as: Record())
  }

  /// - Returns: how many were removed.
  mutating func removeDeadLetters(_ consumer: Consumer) -> Int {
    defer { forget() }
    return endDeath(of: consumer, as: Record(phase: .done))
  }

  private mutating func endDeath(of consumer: Consumer, as next: Record) -> Int {
    let dead = (readers[consumer]?.records ?? [:]).filter { $0.value.phase == .dead }.keys
    for timetoken in dead { readers[consumer]?.records[timetoken] = next }
    return dead.count
  }

  func deadLetters(_ consumer: Consumer) -> [String] {
    log.filter { readers[consumer]?.records[$0.timetoken]?.phase == .dead }.map(\.text)
  }

  /// Ends all holds, as a restart of the machine does.
  mutating func endHolds() {
    for consumer in readers.keys {
      for (timetoken, record) in readers[consumer]?.records ?? [:] {
        switch record.phase {
        case .leased: readers[consumer]?.records[timetoken]?.phase = .leased(until: now)
        case .released: readers[consumer]?.records[timetoken]?.phase = .released(until: now)
        default: break
        }
      }
    }
  }
}
