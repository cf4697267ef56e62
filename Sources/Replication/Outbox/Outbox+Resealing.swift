extension Outbox {
  /// Numbers and seals again what is sealed under keys that were dropped, and what waits for it.
  ///
  /// A database that went back in time writes under a key that the log has dropped since. No member applies such a
  /// record any more, so that what it says takes effect once, under its new number.
  ///
  /// - Parameters:
  ///   - key: the oldest key at the safe position, where the drop cannot be undone.
  ///   - open: opens a record under its old key.
  /// - Returns: the new name of each record of this disk; records of others under old keys are removed.
  package mutating func reseal(
    before key: UInt32, using random: inout some RandomNumberGenerator,
    open: (SealedRecord) throws -> [UInt8], seal: (RecordNumber, [UInt8]) throws -> SealedRecord
  ) throws -> [RecordNumber: RecordNumber] {
    guard let oldestKey, oldestKey < key else { return [:] }
    var resealed = self
    var moved: [(old: RecordNumber, lane: Lane, part: RecordPart)] = []
    var stuck: Set<AuthorID> = []
    for author in order {
      guard let first = rows[author]?.first else { continue }
      guard let lane = ownLanes[author] else {
        if first.key < key { resealed.rows[author] = nil }
        continue
      }
      let follows = first.name.number == 1 ? try RecordPart(decoding: open(first)).follows : nil
      guard first.key < key || follows.map({ stuck.contains($0.author) }) == true else { continue }
      stuck.insert(author)
      for record in rows[author] ?? [] {
        moved.append((record.name, lane, try RecordPart(decoding: open(record))))
      }
      resealed.rows[author] = nil
    }
    resealed.order.removeAll { resealed.rows[$0] == nil }
    resealed.start(using: &random)
    resealed.forgetPredecessors()
    var names: [RecordNumber: RecordNumber] = [:]
    for (old, lane, part) in moved {
      let part = RecordPart(isContinued: part.isContinued, follows: nil, share: part.share)
      names[old] = try resealed.append(part, to: lane, seal: seal)
    }
    self = resealed
    return names
  }
}
