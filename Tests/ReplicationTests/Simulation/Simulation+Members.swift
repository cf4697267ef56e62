import Replication
import TestSupport

extension Simulation {
  /// The database of a node must be replaced by another member's backup.
  func rejoin(_ index: Int) {
    guard !nodes[index].isJoining else { return }
    totals.joins += 1
    nodes[index].stop(settings)
    nodes[index].isJoining = true
    nodes[index].mayFindTrimmed = true
    add(.start(node: index), after: 10)
  }

  /// Asks for a backup: from a member that has applied that this node is a member.
  func join(_ index: Int) {
    guard nodes[index].pendingRead == nil || now - (nodes[index].pendingRead?.at ?? 0) > 9_000
    else { return }
    let others = nodes.indices.filter {
      $0 != index && !nodes[$0].isJoining && nodes[$0].isUp && !isCutOff($0)
    }
    guard let other = others.randomElement(using: &random) else { return }
    let applier = nodes[other].disk.applier
    let isMember =
      applier.state.members[nodes[index].disk.member].map { $0.since <= applier.safe } ?? false
    if nodes[index].disk.applier.state.position == 0, !isMember,
      now - nodes[index].joinWrittenAt > 2_500,
      nodes[index].disk.outbox.rows.oldestKey ?? writingKey < writingKey
    {
      nodes[index].hasOldRing = false
      nodes[index].joinWrittenAt = now
      // What it wrote under an older key is nothing but its join.
      nodes[index].disk.outbox = Outbox(MemoryRows())
      startOutbox(index)
      write(.join(nodes[index].disk.member, safe: nil), index)
    }
    guard isMember || !settings.rules.contains(.joinsBeforeBackup) else { return }
    nodes[index].pendingRead = (0, now)
    let delay = random.oneIn(2) ? between(20, 300) : between(300, 8_000)
    add(
      .backup(node: index, nodes[other].disk, keys: nodes[other].keys),
      after: isEnding ? 20 : delay)
  }

  /// A backup arrives.
  func take(_ backup: SimulatedDisk, _ keys: ClosedRange<UInt32>, _ index: Int) {
    guard nodes[index].isJoining else { return }
    do {
      try nodes[index].disk.replace(by: backup, rules: settings.rules)
      nodes[index].durable = nil
    } catch { judge.fail("a disk could not be replaced: \(error)") }
    nodes[index].isJoining = false
    nodes[index].pendingRead = nil
    nodes[index].relay.noteReturned()
    if nodes[index].disk.outbox.rows.authors.isEmpty { startOutbox(index) }
    nodes[index].keys = keys.lowerBound...(nodes.map(\.keys.upperBound).max() ?? 1)
  }

  // MARK: Faults

  func fault() {
    add(.fault, after: between(200, 1_800))
    if now > 3_000, random.oneIn(2) { changeKeys() }
    // Faults seek the owner.
    let owner = nodes.firstIndex { $0.ownership.epoch != nil }
    let index = owner.flatMap { random.oneIn(2) ? $0 : nil } ?? random.next(nodes.count)
    switch random.next(26) {
    case 0..<4: if nodes[index].isUp { crash(index) }
    case 4..<8: nodes[index].cutOffUntil = now + between(300, 6_000)
    case 8..<11: nodes[index].pausedUntil = now + between(100, 4_000)
    case 11..<13:
      broker.isUp = false
      if settings.brokersForget, random.oneIn(2) { forget() }
      add(.brokerStarts, after: between(50, 1_500))
    case 13: if settings.brokersForget { forget() }
    case 14: nodes[index].backups.append(nodes[index].disk)
    case 15: restore(index)
    case 16..<19:
      if let record = broker.records.randomElement(using: &random) {
        add(.append(record), after: 1)
      }
      if let record = yesterday.randomElement(using: &random) { add(.append(record), after: 1) }
    case 19: if nodes.count < settings.nodeCount + 1, now > 6_000 { addJoiner() }
    case 20..<22: nodes[index].cutOffUntil = now + between(300, 2_000)
    case 22, 23:
      nodes[index].durable = nodes[index].disk
      add(.powerFails(node: index), after: between(1, 1_000))
    case 24:
      write(
        SimulatedOperation.limit(random.oneIn(3) ? nil : UInt8(between(3, 12))).body, index)
    default:
      if let message = nodes[index].disk.tables.messages.last(where: { $0.channel == "bounded" }) {
        write(SimulatedOperation.purge(through: message.origin).body, index)
      }
    }
  }

  private func forget() {
    for record in broker.forget(after: now - between(1, SimulatedBroker.syncInterval), now: now) {
      if let lease = settlementLeases[record.name] { judge.forgottenLeases.insert(lease) }
    }
    judge.noteDestruction(self)
  }

  /// Puts a backup in the place of a disk, at least a while old.
  private func restore(_ index: Int) {
    guard let backup = nodes[index].backups.randomElement(using: &random), !nodes[index].isJoining
    else { return }
    totals.crashes += 1
    nodes[index].stop(settings)
    nodes[index].disk = backup
    nodes[index].durable = nil
    nodes[index].diskNumber += 1
    nodes[index].mayFindTrimmed = true
    // What the lost disk knew of repairs is gone: the docs send its readers back.
    if settings.brokersForget {
      nodes[index].cursor = min(nodes[index].cursor, backup.applier.safeValues.highWater)
    }
    judge.noteDestruction(self)
    add(.start(node: index), after: between(50, 1_000))
  }

  /// Hands a new key to a node, lets the owner switch, and drops the old one when nothing needs it.
  private func changeKeys() {
    let newest: UInt32 = 2
    for index in nodes.indices where random.oneIn(2) {
      nodes[index].keys = nodes[index].keys.lowerBound...newest
    }
    guard let owner = nodes.first(where: { $0.ownership.epoch != nil }),
      owner.keys.upperBound == newest
    else { return }
    if owner.disk.applier.state.values.key < newest {
      write(.keySwitch(newest), owner.index)
    } else if nodes.allSatisfy({
      !$0.isJoining && owner.disk.applier.state.members[$0.disk.member] != nil
    }) {
      // Not while a node is expelled, whose outbox no report tells of.
      write(.keyDrop(newest), owner.index)
    }
  }
}
