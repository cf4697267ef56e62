import Replication
import TestSupport
import Testing

/// When an author's records are appended, and when again.
@Suite struct RelayTests {
  private var random = SeededRandom(seed: 1)
  private var outbox = Outbox(MemoryRows())
  private var relay = Relay()
  private var horizon = ReadHorizon()

  init() throws { try outbox.start(using: &random) }

  /// Writes a record.
  private mutating func write(to lane: OutboxLanes.Lane = .control) throws -> RecordNumber {
    try outbox.add(.leave(MemberID(1)), at: 0, to: lane) { name, part in
      try SealedRecord(name, key: 1, sealed: part)
    }
  }

  private mutating func next(at seconds: Int = 0) throws -> [RecordNumber] {
    try relay.next(outbox.rows, horizon, .seconds(seconds)).map(\.name)
  }

  private mutating func apply(_ name: RecordNumber) {
    outbox.rows.remove(through: name)
    relay.noteApplied(name, .zero)
  }

  /// The node has applied the log up to `position`, and the log has had `last` at a time.
  private mutating func read(
    _ position: UInt64, of last: UInt64, at seconds: Int, isEndKnown: Bool = true,
    isComparing: Bool = false
  ) {
    let batch = Applier.Batch(
      first: 1, last: last, isEndKnown: isEndKnown, entries: [], sentAt: .seconds(seconds),
      receivedAt: .seconds(seconds))
    horizon.note(batch, position: position, isComparing: isComparing)
  }

  @Test mutating func `an author's records follow when its first one is applied`() throws {
    let names = try (0..<3).map { _ in try write() }
    #expect(try next() == [names[0]])
    #expect(try next() == [])
    apply(names[0])
    #expect(try next() == [names[1], names[2]])
    #expect(try next() == [])
  }

  @Test mutating func `an author's records follow a first part, also of an earlier process`() throws
  {
    let names = try (0..<3).map { _ in try write() }
    #expect(try next() == [names[0]])
    relay.noteApplied(names[0], .zero)
    #expect(try next() == Array(names[1...]))
    relay = Relay()
    #expect(try next() == [names[0]])
    relay.noteRepeated(names[0])
    #expect(try next() == Array(names[1...]))
  }

  @Test mutating func `an author whose first record is skipped waits until another has drained`()
    throws
  {
    let earlier = try (0..<2).map { _ in try write(to: .publications) }
    try outbox.start(using: &random)
    let later = try (0..<2).map { _ in try write(to: .publications) }
    #expect(try next() == [earlier[0], later[0]])
    relay.noteGap(later[0], horizon, .zero)
    apply(earlier[0])
    #expect(try next() == [earlier[1]])
    relay.noteGap(later[0], horizon, .zero)
    #expect(try next() == [])
    apply(earlier[1])
    #expect(try next() == [later[0]])
    apply(later[0])
    #expect(try next() == [later[1]])
  }

  @Test mutating func `gaps of what was sent before an author began again change nothing`() throws {
    let names = try (0..<9).map { _ in try write() }
    _ = try next()
    apply(names[0])
    #expect(try next() == Array(names[1...]))
    relay.noteGap(names[2], horizon, .zero)
    #expect(try next() == [], "it was sent this moment")
    relay.noteGap(names[2], horizon, .seconds(1))
    #expect(try next(at: 1) == Array(names[1...]))
    for name in names[3...] { relay.noteGap(name, horizon, .seconds(60)) }
    #expect(try next(at: 60) == [])
    // What was sent again was lost again: another record is applied, or the log was read past the time.
    apply(names[1])
    relay.noteGap(names[3], horizon, .seconds(61))
    #expect(try next(at: 61) == Array(names[2...]))
    read(9, of: 9, at: 62)
    relay.noteGap(names[3], horizon, .seconds(63))
    #expect(try next(at: 63) == Array(names[2...]))
  }

  @Test mutating func `what could not be sent is sent again, with all that can be lost`() throws {
    let names = try (0..<5).map { _ in try write() }
    _ = try next()
    apply(names[0])
    #expect(try next() == Array(names[1...]))
    let more = try (0..<2).map { _ in try write() }
    let failed = try relay.next(outbox.rows, horizon, .zero)
    #expect(failed.map(\.name) == more)
    // A node that is behind does not know what is lost.
    relay.noteFailed(failed, horizon, .seconds(1))
    #expect(try next(at: 1) == more)
    read(9, of: 9, at: 1)
    relay.noteFailed(failed, horizon, .seconds(1))
    #expect(try next(at: 1) == names[1...] + more)
    #expect(try next(at: 1) == [])
  }

  @Test mutating func `a record is sent again when the log had to have it and has not`() throws {
    let name = try write()
    read(0, of: 0, at: 0)
    #expect(try next() == [name])
    read(0, of: 0, at: 1)
    #expect(try next(at: 1) == [])
    read(0, of: 0, at: 2)
    #expect(try next(at: 2) == [name])
    #expect(try next(at: 2) == [])
  }

  @Test mutating func `a node that does not read on sends nothing again`() throws {
    _ = try write()
    read(7, of: 7, at: 1)
    #expect(try next(at: 1).count == 1)
    #expect(try next(at: 3600) == [])
    // It reads, and is behind: the record can be in what it has not applied yet.
    read(20, of: 90, at: 3600)
    #expect(try next(at: 3600) == [])
    // The log grows, and what it had an hour later is applied.
    read(90, of: 190, at: 3601)
    #expect(try next(at: 3601).count == 1)
  }

  @Test mutating func `an end that the leader has not told says nothing of the log`() {
    read(7, of: 7, at: 1, isEndKnown: false)
    #expect(horizon.time == nil)
    read(7, of: 9, at: 2)
    read(9, of: 9, at: 3, isEndKnown: false)
    #expect(horizon.time == .seconds(2))
  }

  @Test mutating func `records that are being compared say nothing of the log`() {
    read(80, of: 80, at: 1)
    read(80, of: 60, at: 2, isComparing: true)
    read(80, of: 80, at: 3, isComparing: true)
    #expect(horizon.time == .seconds(1))
    read(60, of: 60, at: 4)
    #expect(horizon.time == .seconds(4))
  }
}
