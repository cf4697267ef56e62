import Replication
import TestSupport

extension Simulation {
  // MARK: Publishers and readers

  /// A publisher at a node: it publishes in its order, and repeats some of it elsewhere.
  func publish(_ index: Int) {
    guard !isEnding else { return }
    add(.publish(node: index), after: between(15, 120))
    guard nodes[index].isUp, !nodes[index].isJoining else { return }
    let isLocal = !random.oneIn(3)
    let isIdentified = random.oneIn(6)
    let key = isIdentified || random.oneIn(2) ? nil : "key \(index)-\(random.next(2))"
    let channel = random.oneIn(8) && key == nil ? "bounded" : "orders"
    var group: [Int] = []
    var messages: [PublishedMessage] = []
    for _ in 0..<between(1, 3) {
      let payload = judge.publications.count + 1
      let counter = counters[key ?? "", default: 0] + 1
      counters[key ?? ""] = counter
      judge.publications[payload] = Judge.Publication(
        payload: payload, node: index, diskNumber: nodes[index].diskNumber, channel: channel,
        orderingKey: key,
        counter: counter, deduplicationID: isIdentified ? "id \(payload)" : nil)
      group.append(payload)
      messages.append(message(payload))
    }
    guard let name = write(.commit(messages), index, to: .publications) else { return }
    payloads[name] = group
    if isLocal {
      nodes[index].synchronize()
      totals.commits += 1
      for payload in group { judge.publications[payload]?.acknowledgement = .local }
    } else {
      nodes[index].publications[name] = group
    }
    guard isIdentified else { return }
    // Soon, as a client does whose answer was lost, or about when the window ends.
    let delay = random.oneIn(3) ? between(28_000, 32_000) : between(50, 3_000)
    for payload in group { add(.publishAgain(payload: payload), after: delay) }
  }

  func publishAgain(_ payload: Int) {
    let index = random.next(nodes.count)
    guard !isEnding, nodes[index].isUp, !nodes[index].isJoining else { return }
    guard let name = write(.commit([message(payload)]), index, to: .publications) else { return }
    payloads[name] = [payload]
  }

  private func message(_ payload: Int) -> PublishedMessage {
    let publication = judge.publications[payload]
    return PublishedMessage(
      channel: publication?.channel ?? "", deduplicationID: publication?.deduplicationID,
      orderingKey: publication?.orderingKey, content: Payloads.bytes(payload))
  }

  /// A reader takes what its node has after its cursor.
  func poll(_ index: Int) {
    add(.poll(node: index), after: between(80, 200))
    guard nodes[index].isUp, !nodes[index].isJoining else { return }
    let place = nodes[index].disk.readingPlace(nodes[index].cursor)
    let messages = nodes[index].disk.tables.messages
    var position = messages.endIndex
    while position > messages.startIndex, messages[position - 1].timetoken > place { position -= 1 }
    for message in messages[position...] { seen[index, default: []].insert(message.payload) }
    if let last = messages.last { nodes[index].cursor = max(nodes[index].cursor, last.timetoken) }
  }

  // MARK: The owner

  func own(_ index: Int, _ clock: Duration) {
    let state = nodes[index].disk.applier.state
    let before = nodes[index].ownership.epoch
    if nodes[index].canOwn {
      switch nodes[index].ownership.tick(clock, current: state.epoch?.epoch, using: &random) {
      case .nothing: break
      case .claim(let epoch, let predecessor):
        write(.epoch(epoch, predecessor: predecessor, nodes[index].disk.member), index)
      case .beat(let epoch, let beat): write(.heartbeat(epoch, beat: beat), index)
      }
    }
    guard let epoch = before,
      epoch == state.epoch?.epoch || !settings.rules.contains(.endsEpochOnUndo)
    else {
      if nodes[index].leases.count > 0 { nodes[index].leases.removeAll() }
      nodes[index].plan.reset()
      return
    }
    for body in nodes[index].plan.plan(state, clock) { write(body, index) }
    for held in nodes[index].leases.ended(clock) {
      let settlement = Settlement(
        consumer: held.key.consumer, message: held.key.message, lease: held.lease, epoch: epoch,
        outcome: .leaseEnded)
      write(settlement, for: nil, index)
    }
  }

  private func write(_ settlement: Settlement, for worker: Int?, _ index: Int) {
    guard let name = write(.settlement(settlement), index) else { return }
    settlementLeases[name] = settlement.lease
    nodes[index].settlements[name] = (settlement.lease, worker)
    nodes[index].leases.begin(settlement.lease, as: name)
  }

  /// A worker asks for messages.
  func lease(_ worker: Int, _ index: Int) {
    let clock = nodes[index].clock(now)
    guard nodes[index].isUp, !nodes[index].isJoining, !isEnding,
      let epoch = nodes[index].ownership.epoch,
      nodes[index].ownership.mayLease(clock)
    else { return }
    let consumer = workers[worker].consumer
    let duration = between(200, SimulationSettings.longestLease)
    let held = nodes[index].leases.lease(
      nodes[index].disk.tables.candidates(for: consumer, most: 40), to: consumer,
      most: Int(between(1, 3)),
      until: clock + .milliseconds(duration), using: &random)
    for lease in held {
      guard let message = nodes[index].disk.tables.message(lease.key.message) else { continue }
      judge.note(
        Judge.Grant(
          lease: lease.lease, key: lease.key, payload: message.payload,
          orderingKey: message.orderingKey,
          worker: worker, until: now + duration), now: now)
      leasedTimetokens[lease.lease] = message.timetoken
    }
    if !held.isEmpty { send(.leased(worker: worker, held, epoch)) }
  }

  /// A worker settles.
  func settle(_ settlement: Settlement, _ worker: Int, _ index: Int) {
    guard nodes[index].isUp, !nodes[index].isJoining else { return }
    let isOwnLease = nodes[index].ownership.epoch == settlement.epoch
    switch isOwnLease ? nodes[index].leases.decide(settlement.lease) : .unknown {
    case .write:
      guard !isFrozen else { return }
      write(settlement, for: worker, index)
      if !settings.rules.contains(.answersAfterReadBack) {
        send(.answer(worker: worker, settlement, isDone: true))
      }
    case .wait: break
    case .unknown:
      let hasCounted = nodes[index].disk.tables.hasCounted(settlement)
      if hasCounted, settings.rules.contains(.answersRepeated) {
        send(.answer(worker: worker, settlement, isDone: true))
      } else if isOwnLease {
        send(.answer(worker: worker, settlement, isDone: false))
      }
    }
  }

  /// A settlement was applied, on this node.
  func noteApplied(_ settlement: Settlement, _ name: RecordNumber, _ index: Int) {
    let key = LeaseTable.Key(consumer: settlement.consumer, message: settlement.message)
    let hasCounted = nodes[index].disk.tables.hasCounted(settlement)
    if hasCounted {
      judge.noteCounted(settlement, name, end: nodes[index].disk.tables.deliveries[key]?.end)
    }
    guard let (lease, worker) = nodes[index].settlements.removeValue(forKey: name) else { return }
    nodes[index].leases.remove(lease)
    if let worker { send(.answer(worker: worker, settlement, isDone: hasCounted)) }
  }

  // MARK: Workers

  func work(_ worker: Int) {
    add(.worker(worker), after: between(40, 150))
    let attached = worker % nodes.count
    guard nodes[attached].isUp, let owner = nodes[attached].disk.applier.state.epoch?.owner,
      let index = nodes.firstIndex(where: { $0.disk.member == owner })
    else { return }
    switch workers[worker].next(now, &random) {
    case .ask: send(.request(worker: worker, node: index))
    case .settle(let settlement): send(.settle(worker: worker, node: index, settlement))
    case .wait: break
    }
  }

  func take(_ settlement: Settlement, _ isDone: Bool, _ worker: Int) {
    guard workers[worker].remove(settlement.lease) else { return }
    if isDone { judge.noteDone(settlement) } else { judge.noteRefused(settlement) }
  }
}

/// A worker: it leases, works for a while that can be longer than its lease, and settles until it is answered.
struct SimulatedWorker {
  enum Action {
    case ask, wait
    case settle(Settlement)
  }

  private struct Job {
    let settlement: Settlement
    let doneAt: Int64
    var sentAt: Int64 = 0
  }

  let index: Int
  let consumer: String
  private var jobs: [LeaseID: Job] = [:]
  private var order: [LeaseID] = []

  init(_ index: Int) {
    self.index = index
    consumer = SimulatedTables.consumers[index % SimulatedTables.consumers.count]
  }

  mutating func take(
    _ held: [LeaseTable.Held], _ epoch: EpochID, _ now: Int64, _ random: inout SeededRandom
  ) {
    for lease in held where jobs[lease.lease] == nil {
      let outcome: Settlement.Outcome =
        switch random.next(20) {
        case 0..<2: .released(countsAttempt: true, reason: "later")
        case 2: .released(countsAttempt: false, reason: "shutdown")
        case 3: .rejected(reason: "no")
        default: .acknowledged
        }
      let settlement = Settlement(
        consumer: lease.key.consumer, message: lease.key.message, lease: lease.lease, epoch: epoch,
        outcome: outcome)
      let time = random.oneIn(6) ? 1_600 : 300
      jobs[lease.lease] = Job(settlement: settlement, doneAt: now + Int64(random.next(time)))
      order.append(lease.lease)
    }
  }

  mutating func next(_ now: Int64, _ random: inout SeededRandom) -> Action {
    for lease in order {
      guard var job = jobs[lease], job.doneAt <= now else { continue }
      if now - job.doneAt > 6_000 {
        _ = remove(lease)
        continue
      }
      guard now - job.sentAt > 250 else { continue }
      job.sentAt = now
      jobs[lease] = job
      return .settle(job.settlement)
    }
    return jobs.count < 4 ? .ask : .wait
  }

  mutating func remove(_ lease: LeaseID) -> Bool {
    order.removeAll { $0 == lease }
    return jobs.removeValue(forKey: lease) != nil
  }
}
