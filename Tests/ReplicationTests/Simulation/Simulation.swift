import Replication
import TestSupport

/// Nodes, their relays, a broker, publishers, readers and workers on one seeded scheduler.
///
/// Nothing waits and no thread runs: an event takes place at its time, changes one node, one worker or the broker,
/// and adds further events. The same seed gives the same run.
final class Simulation {
  enum Event {
    case append(SealedRecord)
    case read(node: Int, process: Int, id: UInt64, place: UInt64, sentAt: Duration)
    case batch(node: Int, process: Int, id: UInt64, Applier.Batch)
    case trim(UInt64)
    case tick(node: Int, process: Int)
    case publish(node: Int)
    case publishAgain(payload: Int)
    case poll(node: Int)
    case worker(Int)
    case request(worker: Int, node: Int)
    case leased(worker: Int, [LeaseTable.Held], EpochID)
    case settle(worker: Int, node: Int, Settlement)
    case answer(worker: Int, Settlement, isDone: Bool)
    case fault
    case start(node: Int)
    case powerFails(node: Int)
    case brokerStarts
    /// A member's backup, and the keys that it hands on with it.
    case backup(node: Int, SimulatedDisk, keys: ClosedRange<UInt32>)
  }

  struct Totals {
    var steps = 0
    var commits = 0
    var crashes = 0
    var powerCuts = 0
    var repairs = 0
    var joins = 0
    var settled = 0
    var leases = 0
    var trims: UInt64 = 0

    mutating func add(_ other: Totals) {
      steps += other.steps
      commits += other.commits
      crashes += other.crashes
      powerCuts += other.powerCuts
      repairs += other.repairs
      joins += other.joins
      settled += other.settled
      leases += other.leases
      trims += other.trims
    }
  }

  let settings: SimulationSettings
  var random: SeededRandom
  var queue = EventQueue<Event>()
  var now: Int64 = 0
  var broker = SimulatedBroker()
  var nodes: [SimulatedNode] = []
  var workers: [SimulatedWorker] = []
  var judge = Judge()
  var totals = Totals()
  /// Records of which each can arrive a second time, however late.
  var yesterday: [SealedRecord] = []
  /// Members that were expelled.
  var expelled: Set<MemberID> = []
  /// What each commit publishes.
  var payloads: [RecordNumber: [Int]] = [:]
  var settlementLeases: [RecordNumber: LeaseID] = [:]
  /// The timetokens of leased messages where they were leased.
  var leasedTimetokens: [LeaseID: Int64] = [:]
  /// What the reader of each node has seen.
  var seen: [Int: Set<Int>] = [:]
  var counters: [String: Int] = [:]
  var readCount: UInt64 = 0
  /// Faults and new work have ended.
  var isEnding = false
  /// Nodes write nothing of their own any more.
  var isFrozen = false

  init(_ settings: SimulationSettings) {
    self.settings = settings
    random = SeededRandom(seed: settings.seed)
    for index in 0..<settings.nodeCount { addNode(index) }
    for index in nodes.indices {
      add(.start(node: index), after: index == 0 ? 1 : 1_600 + Int64(index) * 10)
    }
    // One clock is an hour fast in some runs. Its node never owns, as the owner's clock is the shard's.
    if random.oneIn(3) {
      nodes[2].wallOffset = 3_600_000
      nodes[2].canOwn = false
    }
    if random.oneIn(3) {
      for index in nodes.indices { nodes[index].clockStep = 30_000 }
    }
    for index in 0..<6 {
      workers.append(SimulatedWorker(index))
      add(.worker(index), after: 500)
    }
    add(.fault, after: 2_500)
  }

  private func addNode(_ index: Int) {
    var node = SimulatedNode(index, MemberID(using: &random), settings)
    node.wallOffset = Int64(random.next(2_000)) - 1_000
    node.clockRate = Int64(random.next(400)) - 200
    nodes.append(node)
    add(.publish(node: index), after: Int64(300 + random.next(300)))
    add(.poll(node: index), after: Int64(300 + random.next(300)))
  }

  /// A node more, which joins with a member's backup.
  func addJoiner() {
    let index = nodes.count
    addNode(index)
    nodes[index].isJoining = true
    nodes[index].hasOldRing = random.oneIn(2)
    totals.joins += 1
    add(.start(node: index), after: 1)
  }

  // MARK: Time and network

  func add(_ event: Event, after delay: Int64) { queue.add(event, at: now + max(delay, 1)) }

  func between(_ low: Int64, _ high: Int64) -> Int64 {
    low + Int64(random.next(Int(high - low + 1)))
  }

  /// Sends something over the network: late, twice or never.
  func send(_ event: Event) {
    guard !isEnding else { return add(event, after: between(1, 10)) }
    if random.oneIn(40) { return }
    add(event, after: delay())
    if random.oneIn(40) { add(event, after: delay()) }
  }

  /// Sends records over one connection: in their order, but for some that are late.
  func append(_ records: [SealedRecord]) {
    let time = isEnding ? 5 : delay()
    for record in records {
      if isEnding || !random.oneIn(60) {
        add(.append(record), after: time)
      } else {
        send(.append(record))
      }
    }
  }

  private func delay() -> Int64 { random.oneIn(30) ? between(20, 3_000) : between(1, 15) }

  func isCutOff(_ node: Int) -> Bool { nodes[node].cutOffUntil > now && !isEnding }

  // MARK: Running

  /// Runs all steps, lets everything come to rest, and judges.
  func run() -> [String] {
    while totals.steps < settings.steps, judge.violations.isEmpty, step() {}
    settle()
    totals.settled = judge.settledCount
    totals.leases = judge.leaseCount
    return judge.violations
  }

  private func step() -> Bool {
    guard let (time, event) = queue.next() else { return false }
    now = time
    totals.steps += 1
    handle(event)
    return true
  }

  /// Ends all faults, and waits until everything is applied everywhere.
  private func settle() {
    guard judge.violations.isEmpty else { return }
    isEnding = true
    broker.isUp = true
    for index in nodes.indices {
      nodes[index].cutOffUntil = 0
      nodes[index].pausedUntil = 0
      if !nodes[index].isUp { start(index) }
    }
    let limit = now + 60_000
    // Longer than the longest delay, then until no outbox has a publication.
    let earliest = now + 4_500
    while now < limit, judge.violations.isEmpty {
      if now > earliest, nodes.allSatisfy({ !$0.isJoining && $0.disk.outbox.rows.count < 4 }) {
        break
      }
      guard step() else { break }
    }
    isFrozen = true
    let end = now + 2_500
    while now < end || now < limit && !isAtRest, judge.violations.isEmpty {
      if queue.count == 0 { break }
      guard step() else { break }
    }
    guard judge.violations.isEmpty else { return }
    for node in nodes where node.isJoining { judge.fail("node \(node.index) could not join") }
    judge.finish(self)
  }

  /// Whether all that was written is in the log, and applied everywhere.
  private var isAtRest: Bool {
    nodes.allSatisfy {
      $0.disk.outbox.rows.count == 0 && $0.disk.applier.state.position == broker.last
    }
  }

  private func handle(_ event: Event) {
    if let node = Self.process(event), nodes[node].pausedUntil > now, !isEnding {
      return queue.add(event, at: nodes[node].pausedUntil)
    }
    switch event {
    case .append(let record):
      broker.append(record, at: now)
      if random.oneIn(100) { yesterday.append(record) }
    case .read(let node, let process, let id, let place, let sentAt):
      guard broker.isUp, !isCutOff(node) else { return }
      let found = broker.read(from: place, most: 40)
      let batch = Applier.Batch(
        first: found.first, last: found.last, entries: found.entries, sentAt: sentAt,
        receivedAt: .zero)
      send(.batch(node: node, process: process, id: id, batch))
    case .batch(let node, let process, let id, let batch):
      guard isRunning(node, process), !isCutOff(node) else { return }
      take(batch, id, node)
    case .trim(let sequence): broker.trim(through: sequence)
    case .tick(let node, let process):
      guard isRunning(node, process) else { return }
      tick(node)
    case .publish(let node): publish(node)
    case .publishAgain(let payload): publishAgain(payload)
    case .poll(let node): poll(node)
    case .worker(let worker): work(worker)
    case .request(let worker, let node): lease(worker, node)
    case .leased(let worker, let held, let epoch): workers[worker].take(held, epoch, now, &random)
    case .settle(let worker, let node, let settlement): settle(settlement, worker, node)
    case .answer(let worker, let settlement, let isDone): take(settlement, isDone, worker)
    case .fault: if !isEnding { fault() }
    case .powerFails(let node): cutPower(node)
    case .start(let node):
      if nodes[node].isUp { break }
      // The first home is the beginning; the others come to it.
      if node > 0, broker.last == 0 { add(event, after: 200) } else { start(node) }
    case .brokerStarts: broker.isUp = true
    case .backup(let node, let disk, let keys): take(disk, keys, node)
    }
  }

  /// The node whose process handles an event.
  private static func process(_ event: Event) -> Int? {
    switch event {
    case .tick(let node, _), .batch(let node, _, _, _), .request(_, let node),
      .settle(_, let node, _):
      node
    default: nil
    }
  }

  private func isRunning(_ node: Int, _ process: Int) -> Bool {
    nodes[node].isUp && nodes[node].process == process
  }
}
