internal import VaultCrypto

extension Applier {
  /// Applies or skips the next record.
  mutating func apply(
    _ entry: LogEntry, readAt: Duration, _ tables: inout some ReplicatedTables,
    _ outcomes: inout [Outcome], _ open: (SealedRecord) throws -> [UInt8]
  ) throws {
    let name = entry.record.name
    var change = ShardState.Change(before: state)
    let last = state.lastNumber(of: name.author)
    var record: Record?
    var author: ShardState.AuthorState?
    var isNext = true
    if name.number <= last, rules.contains(.skipsRepeated) {
      outcomes.append(.repeated(name))
      isNext = false
    } else if name.number > last + 1, rules.contains(.skipsGaps) {
      outcomes.append(.gap(name))
      isNext = false
    }
    if isNext, entry.record.key < state.values.oldestKey, rules.contains(.skipsRetiredKeys) {
      outcomes.append(.retiredKey(name))
      isNext = false
    }
    // Before a switch names a key, not all members need to have it. Afterwards a record under it can come before the reports
    // with which the members first had the key, if brokers forgot these: it counts, and can be one of them.
    if isNext, entry.record.key > state.values.requestedKey {
      outcomes.append(.gap(name))
      isNext = false
    }
    // Only now is it opened: what is skipped can be sealed under a key that is gone.
    if isNext, let bytes = try opened(entry.record, open) {
      guard let part = try? RecordPart(decoding: bytes) else { throw Alarm.unreadable(name) }
      if let follows = part.follows, rules.contains(.followsEarlierAuthor),
        state.lastNumber(of: follows.author) < follows.number
      {
        outcomes.append(.gap(name))
        isNext = false
      }
      if isNext {
        var partCount = state.authors[name.author]?.partCount ?? 0
        if part.isContinued {
          partCount += 1
          guard partCount < RecordPart.mostCount else { throw Alarm.unreadable(name) }
          try tables.keepShare(part.share, name, at: entry.sequence)
        } else {
          let earlier = partCount > 0 ? try tables.shares(of: name.author) : []
          guard let whole = try? Record(decoding: earlier.flatMap { $0 } + part.share) else {
            throw Alarm.unreadable(name)
          }
          partCount = 0
          record = whole
        }
        author = ShardState.AuthorState(number: name.number, partCount: partCount)
      }
    } else if isNext {
      outcomes.append(.gap(name))
      isNext = false
    }
    var clock = TimetokenRule(
      highWater: state.values.highWater, time: record?.time ?? 0,
      ownerTime: rules.contains(.boundsFastClocks) ? state.values.ownerTime : nil)
    if case .report(let member, let safe, let digest, _, _) = record?.body,
      let own = self.digest(at: safe),
      own != digest
    {
      throw Alarm.diverged(member, at: safe)
    }
    if let record {
      let before = clock.highWater
      try tables.apply(record, name, at: entry.sequence, in: state, &clock)
      if state.authors[name.author]?.partCount ?? 0 > 0 {
        try tables.dropShares(of: name.author, at: entry.sequence)
      }
      state.apply(record, at: entry.sequence, &change, &clock, rules)
      outcomes.append(.applied(name, record, timetokens: before...clock.highWater))
    } else if author != nil {
      outcomes.append(.continued(name))
    }
    // After all that can raise an alarm: the batch is stored up to the record before it.
    if let author {
      change.willChange(name.author, in: state)
      state.authors[name.author] = author
    }
    state.values.highWater = clock.highWater
    state.values.position = entry.sequence
    state.values.digest = try state.values.digest.appending(entry.record.digest, clock.highWater)
    try append(
      Tail.Element(RecordPlace(entry), readAt: readAt, isApplied: isNext, before: change),
      entry.record, &tables)
  }

  /// Whether a member has sealed it, under a key that this one has.
  func isSealed(_ record: SealedRecord, _ open: (SealedRecord) throws -> [UInt8]) -> Bool {
    (try? open(record)) != nil
  }

  /// The part in a record; nil for one that no member has sealed, which all members skip.
  ///
  /// Otherwise a client that can append could stop all of them.
  private func opened(
    _ record: SealedRecord, _ open: (SealedRecord) throws -> [UInt8]
  ) throws -> [UInt8]? {
    do {
      return try open(record)
    } catch let error as CryptoError {
      if [.authenticationFailed, .invalidArgument].contains(error.code) { return nil }
      throw error
    } catch {
      throw Alarm.unreadable(record.name)
    }
  }

  /// The digest at a position that this member still knows.
  private func digest(at position: UInt64) -> RecordDigest? {
    if position == state.position { return state.digest }
    return tail.element(after: position)?.before.values.digest
  }
}
