/// Who numbers the records of a disk: an author for each lane, drawn again by each process.
package struct OutboxLanes: Sendable, Equatable {
  /// Records that do not wait for each other.
  package enum Lane: UInt8, Sendable, Hashable, CaseIterable {
    /// What callers publish, in its order.
    case publications
    /// What a node says of itself: settlements, heartbeats, reports. A backlog of publications does not hold them
    /// back.
    case control
  }

  private struct Authorship: Sendable, Equatable {
    let author: AuthorID
    /// The last record of the author before it on this disk.
    let predecessor: RecordNumber?
    var lastNumber: UInt64 = 0
  }

  private var present: [Lane: Authorship] = [:]
  /// The authors of this disk that have records in its outbox, or are the present ones.
  private var own: [AuthorID: Lane] = [:]

  package init() {}

  /// The last number of a present author.
  func lastNumber(of author: AuthorID) -> UInt64? {
    present.values.first { $0.author == author }?.lastNumber
  }

  /// Whether an author is one of this disk that has records in its outbox, or had when the process started.
  package func isOfThisDisk(_ author: AuthorID) -> Bool { own[author] != nil }

  /// The lane of an author of this disk.
  func lane(of author: AuthorID) -> Lane? { own[author] }

  mutating func start(
    keeping authors: Set<AuthorID>, using random: inout some RandomNumberGenerator,
    rules: SafetyRules
  ) {
    own = own.filter { authors.contains($0.key) }
    for lane in Lane.allCases where present[lane] == nil || rules.contains(.drawsAuthorsAtStart) {
      let earlier = present[lane]
      var predecessor = earlier?.predecessor
      if let earlier, earlier.lastNumber > 0 {
        predecessor = RecordNumber(earlier.author, earlier.lastNumber)
      }
      let author = AuthorID(using: &random)
      present[lane] = Authorship(
        author: author, predecessor: lane == .publications ? predecessor : nil)
    }
    for (lane, authorship) in present { own[authorship.author] = lane }
  }

  /// What the next record of a lane waits for: only the first one waits.
  func follows(_ lane: Lane) -> RecordNumber? {
    present[lane].flatMap { $0.lastNumber == 0 ? $0.predecessor : nil }
  }

  /// Takes the next numbers.
  mutating func take(_ count: Int, of lane: Lane) -> [RecordNumber] {
    guard var authorship = present[lane] else {
      preconditionFailure("an outbox takes records only after its start")
    }
    defer { present[lane] = authorship }
    return (0..<count).map { _ in
      authorship.lastNumber += 1
      return RecordNumber(authorship.author, authorship.lastNumber)
    }
  }

  /// The authors of this process do not wait for these, whose records are numbered again.
  mutating func forgetPredecessors(of authors: Set<AuthorID>) {
    present = present.mapValues {
      let predecessor = $0.predecessor.flatMap { authors.contains($0.author) ? nil : $0 }
      return Authorship(
        author: $0.author, predecessor: predecessor, lastNumber: $0.lastNumber)
    }
  }
}

extension OutboxLanes {
  /// The bytes in the database.
  package var bytes: [UInt8] {
    var writer = RecordWriter()
    for lane in Lane.allCases {
      writer.appendOptional(present[lane]) { writer, authorship in
        writer.append(authorship.author)
        writer.append(authorship.lastNumber)
        writer.appendOptional(authorship.predecessor) { $0.append($1) }
      }
    }
    for (author, lane) in own.sorted(by: { $0.key < $1.key }) {
      writer.append(author)
      writer.append(lane.rawValue)
    }
    return writer.bytes
  }

  /// Reads what the database has.
  package init(decoding bytes: [UInt8]) throws(RecordError) {
    var reader = RecordReader(bytes)
    for lane in Lane.allCases {
      present[lane] = try reader.optional { reader throws(RecordError) in
        let author: AuthorID = try reader.identifier()
        let last: UInt64 = try reader.number()
        return Authorship(
          author: author,
          predecessor: try reader.optional { reader throws(RecordError) in
            try reader.recordNumber()
          }, lastNumber: last)
      }
    }
    while !reader.isAtEnd {
      let author: AuthorID = try reader.identifier()
      guard let lane = Lane(rawValue: try reader.byte()) else { throw .unknownKind }
      own[author] = lane
    }
  }
}
