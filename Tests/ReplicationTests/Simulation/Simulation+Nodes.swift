import Replication
import TestSupport

extension Simulation {
  /// Starts a process on a node's disk.
  func start(_ index: Int) {
    nodes[index].isUp = true
    startOutbox(index)
    nodes[index].joinWrittenAt = now
    write(
      .join(
        nodes[index].disk.member,
        safe: nodes[index].isJoining ? nil : nodes[index].disk.applier.safe), index)
    nodes[index].synchronize()
    add(.tick(node: index, process: nodes[index].process), after: 1)
  }

  /// Draws the author ids of a process.
  func startOutbox(_ index: Int) {
    do {
      try nodes[index].disk.outbox.start(using: &random, rules: settings.rules)
    } catch { judge.fail("an outbox could not be started: \(error)") }
  }

  func crash(_ index: Int) {
    totals.crashes += 1
    nodes[index].stop(settings)
    add(.start(node: index), after: between(50, 2_000))
  }

  /// The power of a node fails: what was not synchronized is lost.
  func cutPower(_ index: Int) {
    guard let durable = nodes[index].durable.take(), !isEnding else { return }
    nodes[index].disk = durable
    totals.powerCuts += 1
    for (name, group) in payloads
    where group.contains(where: { judge.publications[$0]?.node == index })
      && durable.applier.state.lastNumber(of: name.author) < name.number
      && durable.outbox.rows.records(of: name.author, after: name.number - 1, most: 1).isEmpty
    {
      for payload in group { judge.publications[payload]?.isForgotten = true }
    }
    if nodes[index].isUp { crash(index) }
  }

  /// Writes a record into the outbox.
  @discardableResult
  func write(_ body: Record.Body, _ index: Int, to lane: OutboxLanes.Lane = .control)
    -> RecordNumber?
  {
    let key =
      nodes[index].isJoining
      ? (nodes[index].hasOldRing ? 1 : writingKey) : nodes[index].disk.applier.state.values.key
    let nonce = (0..<8).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    // Some commits are cut into parts.
    let mostBytes =
      random.oneIn(4) && settings.cutsRecords
      ? RecordPart.overheadByteCount + 40 : SealedRecord.mostBytes
    do {
      return try nodes[index].disk.outbox.add(
        body, at: nodes[index].wallTime(now), to: lane, mostBytes: mostBytes
      ) { name, part in
        try SealedRecord(name, key: key, sealed: nonce + part)
      }
    } catch {
      judge.fail("a record could not be written: \(error)")
      return nil
    }
  }

  /// The key that a joiner is told to write under.
  var writingKey: UInt32 { nodes.map(\.disk.applier.state.values.key).max() ?? 1 }

  /// What a record seals; the simulation does without the seal.
  func part(of record: SealedRecord) -> RecordPart? {
    try? RecordPart(decoding: Array(record.sealed.dropFirst(8)))
  }

  func tick(_ index: Int) {
    add(.tick(node: index, process: nodes[index].process), after: between(20, 40))
    let clock = nodes[index].clock(now)
    if nodes[index].isJoining {
      join(index)
      // Its join is in the outbox of the member that has invited it, and that one reads the log.
      let nothing = Applier.Batch(first: 1, last: 0, entries: [], sentAt: clock, receivedAt: clock)
      nodes[index].horizon.note(nothing, position: 0)
    } else {
      read(index, clock)
      if !isFrozen {
        own(index, clock)
        report(index)
      }
    }
    do {
      let node = nodes[index]
      let records = try nodes[index].relay.next(node.disk.outbox.rows, node.horizon, clock)
      if !isCutOff(index) { append(records) }
    } catch { judge.fail("an outbox could not be read: \(error)") }
  }

  private func read(_ index: Int, _ clock: Duration) {
    if let pending = nodes[index].pendingRead, now - pending.at < 400 { return }
    readCount += 1
    nodes[index].pendingRead = (readCount, now)
    if isCutOff(index) { return }
    send(
      .read(
        node: index, process: nodes[index].process, id: readCount,
        place: nodes[index].disk.applier.readPlace, sentAt: clock))
  }

  private func report(_ index: Int) {
    let node = nodes[index]
    let state = node.disk.applier.state
    guard let known = state.members[node.disk.member] else { return }
    let safe = node.disk.applier.safe
    guard node.pendingReport == nil else { return }
    // What a report says of keys is looked up seldom, as the whole tail is searched for it.
    let hasNewKey = known.newestKey != node.keys.upperBound
    let mayDropKey = known.oldestKey != node.keys.upperBound && random.oneIn(20)
    guard safe >= known.safe + 10 || hasNewKey || mayDropKey else { return }
    nodes[index].pendingReport = write(
      .report(
        node.disk.member, safe: safe, node.disk.applier.safeValues.digest,
        newestKey: node.keys.upperBound,
        oldestKey: node.disk.oldestKey), index)
  }

  // MARK: Applying

  func take(_ found: Applier.Batch, _ id: UInt64, _ index: Int) {
    guard nodes[index].pendingRead?.id == id, !nodes[index].isJoining else { return }
    nodes[index].pendingRead = nil
    if random.oneIn(400), !isEnding { return crash(index) }
    let clock = nodes[index].clock(now)
    let batch = Applier.Batch(
      first: found.first, last: found.last, entries: found.entries, sentAt: found.sentAt,
      receivedAt: clock)
    nodes[index].disk.tables.wallTime = nodes[index].wallTime(now)
    if !settings.rules.contains(.namesByOrigin) {
      nodes[index].disk.tables.leasedTimetokens = leasedTimetokens
    }
    var outcomes: [Applier.Outcome] = []
    var alarm: (any Error)?
    let keys = nodes[index].keys
    do {
      try nodes[index].disk.take(batch, keys, &outcomes)
    } catch { alarm = error }
    if random.oneIn(400), !isEnding, alarm == nil {
      // The transaction is durable, and nothing that follows from it happens.
      for outcome in outcomes { store(outcome, index) }
      nodes[index].synchronize()
      return crash(index)
    }
    for outcome in outcomes {
      store(outcome, index)
      follow(outcome, index, clock)
    }
    reseal(index)
    nodes[index].synchronize()
    if let alarm { return raise(alarm, index) }
    let applier = nodes[index].disk.applier
    let position = applier.state.position
    let isComparing = applier.readPlace != position
    if nodes[index].horizon.note(batch, position: position, isComparing: isComparing) {
      nodes[index].ownership.noteRead(clock)
    }
    if position == found.last {
      if nodes[index].disk.applier.state.members[nodes[index].disk.member] != nil {
        nodes[index].mayFindTrimmed = false
      }
    }
    let oldestKey = nodes[index].disk.applier.safeValues.oldestKey
    if oldestKey > nodes[index].keys.lowerBound {
      nodes[index].keys = oldestKey...nodes[index].keys.upperBound
      nodes[index].backups.removeAll { $0.applier.state.values.key < oldestKey }
    }
    let trimmed = nodes[index].disk.applier.state.values.trimmedThrough
    if nodes[index].ownership.epoch != nil, trimmed > broker.trimmedThrough {
      totals.trims += trimmed - broker.trimmedThrough
      send(.trim(trimmed))
    }
  }

  /// Takes new numbers for what was written under a key that is gone.
  private func reseal(_ index: Int) {
    let values = nodes[index].disk.applier.safeValues
    let key = nodes[index].disk.applier.state.values.key
    do {
      let names = try nodes[index].disk.outbox.reseal(before: values.oldestKey, using: &random) {
        record in
        Array(record.sealed.dropFirst(8))
      } seal: { name, part in
        try SealedRecord(name, key: key, sealed: [UInt8](repeating: 0, count: 8) + part)
      }
      for (old, new) in names {
        payloads[new] = payloads[old]
        nodes[index].publications[new] = nodes[index].publications.removeValue(forKey: old)
        nodes[index].settlements[new] = nodes[index].settlements.removeValue(forKey: old)
        if let lease = settlementLeases[old] { settlementLeases[new] = lease }
        if nodes[index].pendingReport == old { nodes[index].pendingReport = new }
      }
      if !names.isEmpty { nodes[index].relay.noteReturned() }
    } catch { judge.fail("an outbox could not be sealed again: \(error)") }
  }

  /// What belongs into the transaction that applied or undid a record.
  private func store(_ outcome: Applier.Outcome, _ index: Int) {
    switch outcome {
    case .applied(let name, let record, _):
      nodes[index].disk.outbox.rows.remove(through: name)
      guard case .leave(let member) = record.body else { break }
      expelled.insert(member)
      guard member == nodes[index].disk.member else { break }
      // Expelled: it joins again, with what it has if the log still begins before that.
      nodes[index].mayFindTrimmed = true
      write(.join(nodes[index].disk.member, safe: nodes[index].disk.applier.safe), index)
    case .undone(let records, let repair):
      totals.repairs += 1
      if settings.rules.contains(.returnsUndone) { nodes[index].disk.outbox.rows.insert(records) }
      if repair.from < repair.to, settings.rules.contains(.repairsCursors) {
        nodes[index].disk.repaired.append(repair)
        write(.repair(from: repair.from, to: repair.to), index)
      }
    case .continued(let name):
      do { try nodes[index].disk.outbox.noteContinued(name) } catch { judge.fail("\(error)") }
    case .gap, .repeated, .retiredKey: break
    }
  }

  /// What the process does about it.
  private func follow(_ outcome: Applier.Outcome, _ index: Int, _ clock: Duration) {
    switch outcome {
    case .applied(let name, let record, let timetokens):
      nodes[index].relay.noteApplied(name, clock)
      nodes[index].ownership.noteApplied(
        record.body, current: nodes[index].disk.applier.state.epoch?.epoch, clock)
      if nodes[index].pendingReport == name { nodes[index].pendingReport = nil }
      if case .settlement(let settlement) = record.body { noteApplied(settlement, name, index) }
      if case .commit = record.body { checkTime(timetokens.upperBound) }
      for payload in nodes[index].publications.removeValue(forKey: name) ?? [] {
        totals.commits += 1
        judge.publications[payload]?.acknowledgement = .replicated
      }
    case .continued(let name): nodes[index].relay.noteApplied(name, clock)
    case .gap(let name): nodes[index].relay.noteGap(name, nodes[index].horizon, clock)
    case .repeated(let name): nodes[index].relay.noteRepeated(name)
    case .retiredKey: break
    case .undone:
      nodes[index].relay.noteReturned()
      nodes[index].ownership.noteUndone()
    }
  }

  /// The clock of the node that is fast does not count beyond the bound, once an owner's clock bounds it.
  private func checkTime(_ timetoken: Int64) {
    let latest = SimulationSettings.epoch + (now + 2_000) * 10_000 + TimetokenRule.bound
    if timetoken > latest { judge.fail("a fast clock has moved the log") }
  }

  private func raise(_ alarm: any Error, _ index: Int) {
    guard let alarm = alarm as? Applier.Alarm else { return judge.fail("\(alarm)") }
    if case .trimmed = alarm {
      if !nodes[index].mayFindTrimmed, !expelled.contains(nodes[index].disk.member) {
        judge.fail("node \(index) found the log trimmed: \(alarm)")
      }
      rejoin(index)
    } else {
      judge.fail("alarm of node \(index): \(alarm)")
    }
  }
}
