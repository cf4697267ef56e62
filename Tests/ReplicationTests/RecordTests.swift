import Replication
import TestSupport
import Testing
import VaultCrypto

@Suite struct RecordTests {
  private static let origin = MessageOrigin(RecordNumber(AuthorID(7), 300), 2)

  static let bodies: [Record.Body] = [
    .commit([]),
    .commit([
      PublishedMessage(
        channel: "shop/orders", deduplicationID: "d", orderingKey: "k", content: [1, 2, 3]),
      PublishedMessage(channel: "ü", content: []),
    ]),
    .settlement(settlement(.acknowledged)),
    .settlement(settlement(.released(countsAttempt: true, reason: "later"))),
    .settlement(settlement(.released(countsAttempt: false, reason: ""))),
    .settlement(settlement(.rejected(reason: "no"))),
    .settlement(settlement(.leaseEnded)),
    .epoch(EpochID(1), predecessor: nil, MemberID(2)),
    .epoch(EpochID(.max), predecessor: EpochID(3), MemberID(2)),
    .heartbeat(EpochID(1), beat: .max),
    .report(MemberID(2), safe: 9, .zero, newestKey: 2, oldestKey: 1),
    .join(MemberID(2), safe: nil), .join(MemberID(2), safe: 4), .leave(MemberID(2)),
    .trim(through: 77), .operation(origin.bytes), .operation([]), .rows([1, 2, 3]),
    .keySwitch(2), .keyDrop(2), .repair(from: -1, to: .max),
  ]

  private static func settlement(_ outcome: Settlement.Outcome) -> Settlement {
    Settlement(
      consumer: "work", message: origin, lease: LeaseID(5), epoch: EpochID(6), outcome: outcome)
  }

  @Test(arguments: bodies) func `a record is read as it was written`(_ body: Record.Body) throws {
    let record = Record(time: 17_900_000_000_000_123, body)
    #expect(try Record(decoding: record.encoded) == record)
  }

  @Test(arguments: ["a", "ü", "€", "😀"])
  func `a text that is too long is cut behind a whole character`(_ character: String) throws {
    for start in 0..<4 {
      let text = String(repeating: "a", count: start) + String(repeating: character, count: 65_535)
      let record = Record(time: 0, .settlement(Self.settlement(.rejected(reason: text))))
      let read = try Record(decoding: record.encoded)
      guard case .settlement(let settlement) = read.body,
        case .rejected(let reason) = settlement.outcome
      else {
        Issue.record("another record was read")
        return
      }
      #expect(text.hasPrefix(reason))
      #expect((65_532...65_535).contains(reason.utf8.count))
    }
  }

  @Test(arguments: bodies) func `a record that is cut or goes on is refused`(_ body: Record.Body) {
    let bytes = Record(time: 1, body).encoded
    for count in bytes.indices {
      #expect(throws: RecordError.self) { try Record(decoding: Array(bytes[..<count])) }
    }
    #expect(throws: RecordError.self) { try Record(decoding: bytes + [0]) }
  }

  @Test func `changed bytes are read as another record, or refused`() {
    var random = SeededRandom(seed: 3)
    for body in Self.bodies {
      let record = Record(time: 1, body)
      for _ in 0..<200 {
        var bytes = record.encoded
        let index = random.next(bytes.count)
        bytes[index] ^= UInt8(1 << random.next(8))
        guard let changed = try? Record(decoding: bytes) else { continue }
        #expect(changed != record)
        #expect(changed.encoded == bytes)
      }
    }
  }

  @Test func `a heartbeat has the bytes of its specification`() {
    let record = Record(time: 258, .heartbeat(EpochID(1), beat: 3))
    #expect(
      record.encoded.hexadecimal == "04" + "0000000000000102" + String(repeating: "0", count: 31)
        + "1"
        + "0000000000000003")
  }

  // MARK: Parts and outbox

  private static func seal(_ name: RecordNumber, _ part: [UInt8]) throws -> SealedRecord {
    try SealedRecord(name, key: 1, sealed: part)
  }

  @Test func `a large commit takes effect with its last part`() throws {
    var random = SeededRandom(seed: 1)
    var outbox = Outbox(MemoryRows())
    try outbox.start(using: &random)
    let content = [UInt8](repeating: 9, count: 1_000)
    let body = Record.Body.commit([PublishedMessage(channel: "c", content: content)])
    let last = try outbox.add(
      body, at: 5, to: .publications, mostBytes: RecordPart.overheadByteCount + 300, seal: Self.seal
    )
    let records = outbox.rows.records(of: last.author, after: 0, most: .max)
    #expect(records.map(\.name.number) == [1, 2, 3, 4])
    var applier = Applier()
    var tables = SimulatedTables(rules: .all)
    var outcomes: [Applier.Outcome] = []
    for (index, record) in records.enumerated() {
      #expect(tables.messages.isEmpty)
      let start = max(index, 1)
      let entries = records.enumerated().map {
        LogEntry(sequence: UInt64($0.offset + 1), storedAt: Int64($0.offset), $0.element)
      }
      let batch = Applier.Batch(
        first: 1, last: UInt64(index + 1), entries: Array(entries[(start - 1)...index]),
        sentAt: .zero,
        receivedAt: .zero)
      try applier.take(batch, syncInterval: .seconds(9), into: &tables, outcomes: &outcomes) {
        $0.sealed
      }
      #expect(applier.state.lastNumber(of: record.name.author) == UInt64(index + 1))
    }
    #expect(tables.messages.count == 1)
    let continued = outcomes.compactMap {
      if case .continued(let name) = $0 { name.number } else { nil }
    }
    #expect(continued == [1, 2, 3])
    for number in continued { try outbox.noteContinued(RecordNumber(last.author, number)) }
    #expect(outbox.rows.records(of: last.author, after: 0, most: .max) == records)
    outbox.rows.remove(through: last)
    #expect(outbox.rows.isEmpty)
    // What another member gets back, whose author has lost the rest, is not sent for ever.
    try outbox.takeBack(Array(records.prefix(2)))
    try outbox.noteContinued(RecordNumber(last.author, 1))
    #expect(outbox.rows.records(of: last.author, after: 0, most: .max).count == 2)
    try outbox.noteContinued(RecordNumber(last.author, 2))
    #expect(outbox.rows.isEmpty)
  }

  @Test func `a commit with too many parts is refused`() throws {
    var random = SeededRandom(seed: 1)
    var outbox = Outbox(MemoryRows())
    try outbox.start(using: &random)
    let body = Record.Body.commit([
      PublishedMessage(channel: "c", content: [UInt8](repeating: 0, count: 100))
    ])
    #expect(throws: RecordError.self) {
      try outbox.add(
        body, at: 5, to: .publications, mostBytes: RecordPart.overheadByteCount + 1, seal: Self.seal
      )
    }
    #expect(outbox.rows.isEmpty)
  }

  @Test func `records that come back are sent again in their author's order, once`() throws {
    var random = SeededRandom(seed: 1)
    var outbox = Outbox(MemoryRows())
    try outbox.start(using: &random)
    for beat in 1...3 {
      _ = try outbox.add(
        .heartbeat(EpochID(1), beat: UInt64(beat)), at: 0, to: .control, seal: Self.seal)
    }
    let author = try #require(outbox.rows.authors.first)
    let records = Array(outbox.rows.records(of: author, after: 0, most: 9))
    outbox.rows.remove(through: records[1].name)
    try outbox.takeBack([records[0], records[1], records[2]])
    #expect(Array(outbox.rows.records(of: author, after: 0, most: 9)) == records)
  }

  @Test func `a record that another process has written under the same author is noticed`() throws {
    var random = SeededRandom(seed: 1)
    var outbox = Outbox(MemoryRows())
    try outbox.start(using: &random)
    let name = try outbox.add(.leave(MemberID(1)), at: 0, to: .control, seal: Self.seal)
    let own = try #require(outbox.rows.records(of: name.author, after: 0, most: 1).first)
    #expect(try !outbox.contradicts(own))
    #expect(try outbox.contradicts(SealedRecord(name, key: 1, sealed: [1])))
    #expect(try outbox.contradicts(SealedRecord(RecordNumber(name.author, 2), key: 1, sealed: [1])))
    #expect(
      try !outbox.contradicts(try SealedRecord(RecordNumber(AuthorID(9), 2), key: 1, sealed: [1])))
  }

  // MARK: Applying

  private struct Run {
    var applier = Applier()
    var tables = SimulatedTables(rules: .all)
    var outcomes: [Applier.Outcome] = []
    var entries: [LogEntry] = []

    mutating func append(_ body: Record.Body, time: Int64) throws {
      let share = Record(time: time, body).encoded
      let part = RecordPart(isContinued: false, follows: nil, share: share)
      let name = RecordNumber(AuthorID(1), UInt64(entries.count + 1))
      entries.append(
        LogEntry(
          sequence: name.number, storedAt: 0, try SealedRecord(name, key: 1, sealed: part.bytes)))
    }

    mutating func apply() throws { try apply(entries, isEndKnown: true) }

    /// Takes a part of the log, behind which a consumer has told of none.
    mutating func apply(_ entries: [LogEntry], isEndKnown: Bool, first: UInt64 = 1) throws {
      let batch = Applier.Batch(
        first: first, last: entries.last?.sequence ?? 0, isEndKnown: isEndKnown, entries: entries,
        sentAt: .zero, receivedAt: .zero)
      try applier.take(batch, syncInterval: .seconds(9), into: &tables, outcomes: &outcomes) {
        $0.sealed
      }
    }
  }

  @Test(arguments: [true, false])
  func `only the leader's word that the log has no more undoes what it had`(isEndKnown: Bool) throws
  {
    var run = Run()
    for time in 1...5 { try run.append(.leave(MemberID(UInt128(time))), time: Int64(time)) }
    try run.apply()
    // The last record is not found at its place, and the tail is compared.
    try run.apply([], isEndKnown: true)
    #expect(run.applier.readPlace == 0)
    try run.apply(Array(run.entries.prefix(3)), isEndKnown: isEndKnown)
    #expect(run.applier.state.position == (isEndKnown ? 3 : 5))
    try run.apply(Array(run.entries.dropFirst(2)), isEndKnown: true)
    #expect(run.applier.state.position == 5 && run.applier.readPlace == 5)
  }

  @Test func `a log that begins behind the next record is refused`() throws {
    var run = Run()
    for time in 1...6 { try run.append(.leave(MemberID(UInt128(time))), time: Int64(time)) }
    let entries = run.entries
    #expect(throws: Applier.Alarm.trimmed(needed: 1, first: 2)) {
      try run.apply(Array(entries.dropFirst()), isEndKnown: true)
    }
    try run.apply(Array(entries.prefix(3)), isEndKnown: true)
    #expect(throws: Applier.Alarm.trimmed(needed: 3, first: 5)) {
      try run.apply(Array(entries.dropFirst(4)), isEndKnown: true, first: 5)
    }
    #expect(run.applier.state.position == 3)
  }

  @Test func `extreme values in records stop no node`() throws {
    var run = Run()
    let message = PublishedMessage(channel: "c", content: [])
    for time in [Int64.min, .max] {
      try run.append(.join(MemberID(1), safe: .max), time: time)
      try run.append(
        .report(MemberID(1), safe: .max, .zero, newestKey: .max, oldestKey: .max), time: time)
      try run.append(.epoch(EpochID(1), predecessor: nil, MemberID(1)), time: time)
      try run.append(.heartbeat(EpochID(1), beat: .max), time: time)
      try run.append(.commit([message, message]), time: time)
      try run.append(.repair(from: .min, to: .max), time: time)
      try run.append(.trim(through: .max), time: time)
      try run.append(.commit([message]), time: time)
    }
    try run.apply()
    #expect(run.applier.state.position == 16)
    #expect(run.applier.state.values.highWater == TimetokenRule.greatest)
    #expect(run.applier.state.values.trimmedThrough < 16)
    #expect(run.applier.state.values.oldestKey == 1)
  }

  @Test func `a report with another digest is an alarm`() throws {
    var run = Run()
    try run.append(.join(MemberID(1), safe: nil), time: 1)
    try run.append(.report(MemberID(1), safe: 1, .zero, newestKey: 1, oldestKey: 1), time: 1)
    #expect(throws: Applier.Alarm.diverged(MemberID(1), at: 1)) { try run.apply() }
    #expect(run.applier.state.position == 1)
  }
}
