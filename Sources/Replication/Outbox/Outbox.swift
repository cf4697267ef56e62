/// The records that this node has promised to bring into the log, and that its tables do not have yet.
///
/// Its own records enter in the transaction that makes them. Records of any author come back when they are undone.
/// They leave in the transaction that applies them, and from then on are in the ``Tail``. All of it is stored with
/// the tables.
package struct Outbox: Sendable {
  /// Records that do not wait for each other.
  package enum Lane: Sendable, Hashable, CaseIterable {
    /// What callers publish, in its order.
    case publications
    /// What a node says of itself: settlements, heartbeats, reports. A backlog of publications does not hold them
    /// back.
    case control
  }

  private struct Authorship: Sendable {
    let author: AuthorID
    /// The last record of the author before it on this disk.
    let predecessor: RecordNumber?
    var lastNumber: UInt64 = 0
  }

  private var lanes: [Lane: Authorship] = [:]
  /// The authors of this disk that have records here, or are the present ones.
  private(set) var ownLanes: [AuthorID: Lane] = [:]
  /// Each author's records in the order of their numbers.
  var rows: [AuthorID: [SealedRecord]] = [:]
  /// The authors of ``rows``, in the order in which they came.
  var order: [AuthorID] = []

  package init() {}

  package var isEmpty: Bool { rows.isEmpty }
  package var count: Int { rows.values.reduce(0) { $0 + $1.count } }
  package var authors: [AuthorID] { order }

  /// Takes new author ids: call it at each start, and after a database was replaced.
  ///
  /// A database that was restored from a backup cannot know which numbers it has used. So no number is used by two
  /// processes.
  package mutating func start(
    using random: inout some RandomNumberGenerator, rules: SafetyRules = .all
  ) {
    ownLanes = ownLanes.filter { rows[$0.key] != nil }
    for lane in Lane.allCases where lanes[lane] == nil || rules.contains(.drawsAuthorsAtStart) {
      let earlier = lanes[lane]
      var predecessor = earlier?.predecessor
      if let earlier, earlier.lastNumber > 0 {
        predecessor = RecordNumber(earlier.author, earlier.lastNumber)
      }
      let author = AuthorID(using: &random)
      lanes[lane] = Authorship(
        author: author, predecessor: lane == .publications ? predecessor : nil)
      ownLanes[author] = lane
    }
  }

  /// Whether an author is this process.
  package func isOwn(_ author: AuthorID) -> Bool { lanes.values.contains { $0.author == author } }

  /// Whether a record of the log is of an author of this process, which has written another one or none.
  ///
  /// A memory snapshot was resumed twice, and both processes have one author. This one must stop.
  package func contradicts(_ record: SealedRecord) -> Bool {
    guard let own = lanes.values.first(where: { $0.author == record.name.author }) else {
      return false
    }
    if record.name.number > own.lastNumber { return true }
    let row = rows[record.name.author]?.first { $0.name == record.name }
    return row.map { $0.digest != record.digest } ?? false
  }

  /// Numbers a record of this node and seals it, in one part or in several.
  ///
  /// - Parameter seal: seals the bytes of a part under the name that it is given.
  /// - Returns: the number of the last part, with which the record takes effect.
  package mutating func add(
    _ body: Record.Body, at time: Int64, to lane: Lane, mostBytes: Int = SealedRecord.mostBytes,
    seal: (RecordNumber, [UInt8]) throws -> SealedRecord
  ) throws -> RecordNumber {
    guard var authorship = lanes[lane] else {
      preconditionFailure("an outbox takes records only after its start")
    }
    let parts = try RecordPart.split(
      Record(time: time, body).encoded,
      follows: authorship.lastNumber == 0 ? authorship.predecessor : nil, mostBytes: mostBytes)
    var sealed: [SealedRecord] = []
    for part in parts {
      authorship.lastNumber += 1
      sealed.append(try seal(RecordNumber(authorship.author, authorship.lastNumber), part.bytes))
    }
    lanes[lane] = authorship
    append(sealed, of: authorship.author)
    return RecordNumber(authorship.author, authorship.lastNumber)
  }

  /// Numbers and seals a part.
  mutating func append(
    _ part: RecordPart, to lane: Lane, seal: (RecordNumber, [UInt8]) throws -> SealedRecord
  ) throws -> RecordNumber {
    guard var authorship = lanes[lane] else {
      preconditionFailure("an outbox takes records only after its start")
    }
    authorship.lastNumber += 1
    let name = RecordNumber(authorship.author, authorship.lastNumber)
    append([try seal(name, part.bytes)], of: authorship.author)
    lanes[lane] = authorship
    return name
  }

  /// The authors of this process wait for none before them.
  mutating func forgetPredecessors() {
    lanes = lanes.mapValues {
      Authorship(author: $0.author, predecessor: nil, lastNumber: $0.lastNumber)
    }
  }

  private mutating func append(_ records: [SealedRecord], of author: AuthorID) {
    if rows[author] == nil { order.append(author) }
    rows[author, default: []] += records
  }

  /// Takes records back that were undone, or that a replaced database had.
  ///
  /// They keep their bytes, so that every node still takes each of them once.
  package mutating func takeBack(_ records: some Sequence<SealedRecord>) {
    for record in records {
      let author = record.name.author
      var known = rows[author] ?? []
      if rows[author] == nil { order.append(author) }
      let index = known.firstIndex { $0.name.number >= record.name.number } ?? known.endIndex
      if index < known.endIndex, known[index].name == record.name { continue }
      known.insert(record, at: index)
      rows[author] = known
    }
  }

  /// Takes over what the replaced database had.
  package mutating func takeOver(_ earlier: Outbox) {
    lanes = earlier.lanes
    ownLanes = earlier.ownLanes
    for author in earlier.order { takeBack(earlier.rows[author] ?? []) }
  }

  /// The oldest key of its records.
  package var oldestKey: UInt32? { rows.values.flatMap { $0 }.map(\.key).min() }

  /// Removes what is applied up to this number.
  package mutating func remove(through name: RecordNumber) {
    guard var known = rows[name.author] else { return }
    known.removeAll { $0.name.number <= name.number }
    rows[name.author] = known.isEmpty ? nil : known
    if known.isEmpty { order.removeAll { $0 == name.author } }
  }

  /// Removes what `state` has applied: after a database was replaced.
  package mutating func remove(appliedIn state: ShardState) {
    for author in order { remove(through: RecordNumber(author, state.lastNumber(of: author))) }
  }

  /// An author's records after a number, at most so many.
  package func records(of author: AuthorID, after number: UInt64, most: Int) -> ArraySlice<
    SealedRecord
  > {
    guard let known = rows[author] else { return [] }
    let start = known.firstIndex { $0.name.number > number } ?? known.endIndex
    return known[start...].prefix(most)
  }
}
