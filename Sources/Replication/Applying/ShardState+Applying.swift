extension ShardState {
  /// Applies what a record says of the log itself.
  ///
  /// A record that says nothing here, or that is refused, changes nothing but its author's number.
  mutating func apply(
    _ record: Record, at position: UInt64, _ change: inout Change, _ clock: inout TimetokenRule,
    _ rules: SafetyRules
  ) {
    switch record.body {
    case .epoch(let epoch, let predecessor, let member):
      guard predecessor == values.epoch?.epoch else { break }
      values.epoch = EpochRecord(epoch: epoch, owner: member)
      values.ownerTime = max(TimetokenRule.clamped(record.time), values.ownerTime ?? 0)
    case .heartbeat(let epoch, _):
      guard epoch == values.epoch?.epoch else { break }
      values.ownerTime = max(TimetokenRule.clamped(record.time), values.ownerTime ?? 0)
    case .report(let member, let safe, _, let newestKey, let oldestKey):
      guard let known = members[member], safe < position else { break }
      change.willChange(member, in: self)
      members[member] = Member(
        since: known.since, safe: safe, newestKey: newestKey, oldestKey: oldestKey)
    case .join(let member, let safe):
      guard safe.map({ $0 < position }) ?? true else { break }
      // The first member's clock is the shard's until there is an owner.
      values.ownerTime = values.ownerTime ?? TimetokenRule.clamped(record.time)
      change.willChange(member, in: self)
      let known = members[member]
      let needed = min(safe ?? position - 1, known?.safe ?? .max)
      members[member] = Member(
        since: known?.since ?? position, safe: needed, newestKey: known?.newestKey ?? values.key,
        oldestKey: known?.oldestKey ?? values.oldestKey)
    case .leave(let member):
      change.willChange(member, in: self)
      members[member] = nil
    case .trim(let through): trim(through, at: position, rules)
    case .keySwitch(let key): values.requestedKey = max(values.requestedKey, key)
    case .keyDrop(let key):
      guard key > values.oldestKey, key <= values.key,
        members.values.allSatisfy({ $0.oldestKey >= key })
      else { break }
      values.oldestKey = key
    case .repair(let from, let to):
      guard from < to, rules.contains(.repairsCursors) else { break }
      clock.raise(past: to)
      values.repaired.append(TimetokenRange(from: from, to: to))
      // Cursors in a range that is no longer listed are of readers who were away for a long time.
      if values.repaired.count > Self.mostRepairedRanges { values.repaired.removeFirst() }
    case .commit, .settlement, .operation, .rows: break
    }
    switchKey(rules)
  }

  /// Switches to the requested key when all members have said that they have it: with the last of them, as brokers that
  /// forgot a switch and a report can get them back in another order.
  private mutating func switchKey(_ rules: SafetyRules) {
    guard values.requestedKey > values.key else { return }
    let isHeldByAll = members.values.allSatisfy { $0.newestKey >= values.requestedKey }
    if isHeldByAll || !rules.contains(.switchesKeyWithAll) { values.key = values.requestedKey }
  }

  /// How many repaired ranges are remembered.
  static let mostRepairedRanges = 64

  /// Keeps the record at each member's safe position, with which its next comparison begins.
  private mutating func trim(_ through: UInt64, at position: UInt64, _ rules: SafetyRules) {
    var bounded = min(through, position - 1)
    if rules.contains(.trimsBehindMembers), let least = members.values.map(\.safe).min() {
      bounded = min(bounded, least == 0 ? 0 : least - 1)
    }
    values.trimmedThrough = max(values.trimmedThrough, bounded)
  }
}
