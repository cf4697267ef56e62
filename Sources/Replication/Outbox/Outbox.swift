/// The records that this node has promised to bring into the log, and that its tables do not have yet.
///
/// Its own records enter in the transaction that makes them. Records of any author come back when they are undone.
/// They leave in the transaction that applies them, and from then on are in the ``Tail``. Rows and lanes are stored
/// with the tables.
package struct Outbox<Rows: OutboxRows> {
  package private(set) var lanes: OutboxLanes
  package var rows: Rows

  /// - Parameter lanes: as the database has stored them; default: those of a new one.
  package init(_ rows: Rows, _ lanes: OutboxLanes = OutboxLanes()) {
    self.rows = rows
    self.lanes = lanes
  }

  /// Takes new author ids: call it at each start, and after a database was replaced.
  ///
  /// A database that was restored from a backup cannot know which numbers it has used. So no number is used by two
  /// processes.
  package mutating func start(
    using random: inout some RandomNumberGenerator, rules: SafetyRules = .all
  ) throws {
    lanes.start(keeping: Set(try rows.authors), using: &random, rules: rules)
  }

  /// Numbers a record of this node and seals it, in one part or in several.
  ///
  /// - Parameter seal: seals the bytes of a part under the name that it is given.
  /// - Returns: the number of the last part, with which the record takes effect.
  package mutating func add(
    _ body: Record.Body, at time: Int64, to lane: OutboxLanes.Lane,
    mostBytes: Int = SealedRecord.mostBytes,
    seal: (RecordNumber, [UInt8]) throws -> SealedRecord
  ) throws -> RecordNumber {
    let parts = try RecordPart.split(
      Record(time: time, body).encoded, follows: lanes.follows(lane), mostBytes: mostBytes)
    let names = lanes.take(parts.count, of: lane)
    try rows.insert(zip(names, parts).map { try seal($0, $1.bytes) })
    return names[names.count - 1]
  }

  /// Takes records back that were undone, or that a replaced database had.
  ///
  /// They keep their bytes, so that every node still takes each of them once.
  package mutating func takeBack(_ records: [SealedRecord]) throws { try rows.insert(records) }

  /// A part of a record is in the log: all stay until the last, as together they can be sealed again.
  ///
  /// A part that came back without the rest goes: the rest comes from its author, or never.
  package mutating func noteContinued(_ name: RecordNumber) throws {
    let hasRest = try !rows.records(of: name.author, after: name.number, most: 1).isEmpty
    if !hasRest { try rows.remove(through: name) }
  }

  /// Takes over what the replaced database had.
  package mutating func takeOver(_ earlier: Outbox) throws {
    lanes = earlier.lanes
    for author in try earlier.rows.authors {
      try rows.insert(try earlier.rows.records(of: author))
    }
  }

  /// Removes what `state` has applied: after a database was replaced.
  package mutating func remove(appliedIn state: ShardState) throws {
    for author in try rows.authors {
      try rows.remove(through: RecordNumber(author, state.lastNumber(of: author)))
    }
  }

  /// Whether a record of the log is of an author of this process, which has written another one or none.
  ///
  /// A memory snapshot was resumed twice, and both processes have one author. This one must stop.
  package func contradicts(_ record: SealedRecord) throws -> Bool {
    guard record.name.number > 0, let last = lanes.lastNumber(of: record.name.author) else {
      return false
    }
    if record.name.number > last { return true }
    let own = try rows.records(of: record.name.author, after: record.name.number - 1, most: 1).first
    return own.map { $0.name == record.name && $0.digest != record.digest } ?? false
  }

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
    guard let oldestKey = try rows.oldestKey, oldestKey < key else { return [:] }
    var moved: [(old: RecordNumber, lane: OutboxLanes.Lane, part: RecordPart)] = []
    var stuck: Set<AuthorID> = []
    for author in try rows.authors {
      let records = try rows.records(of: author)
      guard let first = records.first else { continue }
      guard let lane = lanes.lane(of: author) else {
        if first.key < key { try rows.removeAll(of: author) }
        continue
      }
      let follows = first.name.number == 1 ? try RecordPart(decoding: open(first)).follows : nil
      guard first.key < key || follows.map({ stuck.contains($0.author) }) == true else { continue }
      stuck.insert(author)
      for record in records {
        moved.append((record.name, lane, try RecordPart(decoding: open(record))))
      }
      try rows.removeAll(of: author)
    }
    try start(using: &random)
    lanes.forgetPredecessors(of: stuck)
    var names: [RecordNumber: RecordNumber] = [:]
    for (old, lane, part) in moved {
      let name = lanes.take(1, of: lane)[0]
      let part = RecordPart(isContinued: part.isContinued, follows: nil, share: part.share)
      try rows.insert([seal(name, part.bytes)])
      names[old] = name
    }
    return names
  }
}
