import Replication
import TestSupport
import Testing

@Suite struct OwnershipTests {
  private static let limits: Ownership.Limits = {
    var limits = Ownership.Limits()
    limits.heartbeatInterval = .seconds(1)
    limits.heartbeatLimit = .seconds(5)
    limits.silence = .seconds(5)
    limits.longestLease = .seconds(60)
    limits.margin = .seconds(1)
    return limits
  }()

  private var random = SeededRandom(seed: 1)
  private var ownership = Ownership(limits)
  private let member = MemberID(1)

  /// Reads the log's end each second.
  private mutating func read(_ seconds: ClosedRange<Int>) {
    for second in seconds { ownership.noteRead(.seconds(second)) }
  }

  /// Claims without an owner before it, and applies the claim a second later.
  private mutating func own() throws -> EpochID {
    read(0...1)
    let action = ownership.tick(.seconds(1), current: nil, using: &random)
    guard case .claim(let epoch, nil) = action else {
      throw Applier.Alarm.foreignLog(at: 0)
    }
    ownership.noteApplied(
      .epoch(epoch, predecessor: nil, member), current: epoch, .seconds(2))
    return epoch
  }

  @Test mutating func `an owner leases after all earlier leases, while its heartbeats come back`()
    throws
  {
    let epoch = try own()
    #expect(ownership.epoch == epoch)
    // It wrote its claim at 1 and applied it at 2: 5 + 60 + 1 seconds later the old leases have ended.
    #expect(!ownership.mayLease(.seconds(67)))
    #expect(!ownership.mayLease(.seconds(68)))
    let first = ownership.tick(.seconds(66), current: epoch, using: &random)
    #expect(first == .beat(epoch, 1))
    ownership.noteApplied(.heartbeat(epoch, beat: 1), current: epoch, .seconds(67))
    #expect(!ownership.mayLease(.milliseconds(67_999)))
    #expect(ownership.mayLease(.seconds(68)))
    // The heartbeat was written at 66.
    #expect(ownership.mayLease(.milliseconds(70_999)))
    #expect(!ownership.mayLease(.seconds(71)))
  }

  @Test mutating func `a heartbeat is written after the one before has come back`() throws {
    let epoch = try own()
    let first = ownership.tick(.seconds(3), current: epoch, using: &random)
    #expect(first == .beat(epoch, 1))
    let early = ownership.tick(.seconds(9), current: epoch, using: &random)
    #expect(early == .nothing)
    ownership.noteApplied(.heartbeat(epoch, beat: 1), current: epoch, .seconds(10))
    let second = ownership.tick(.seconds(10), current: epoch, using: &random)
    #expect(second == .beat(epoch, 2))
  }

  @Test mutating func `an owner that undoes records, or reads another epoch, is none`() throws {
    _ = try own()
    ownership.noteUndone()
    #expect(ownership.epoch == nil)
    ownership = Ownership(Self.limits)
    let epoch = try own()
    ownership.noteApplied(
      .epoch(EpochID(9), predecessor: epoch, MemberID(2)), current: EpochID(9), .seconds(4))
    #expect(ownership.epoch == nil)
  }

  @Test mutating func `a claim that came second makes no owner`() {
    read(0...1)
    guard case .claim(let epoch, nil) = ownership.tick(.seconds(1), current: nil, using: &random)
    else {
      Issue.record("no claim")
      return
    }
    ownership.noteApplied(.epoch(epoch, predecessor: nil, member), current: EpochID(9), .seconds(2))
    #expect(ownership.epoch == nil)
    #expect(!ownership.mayLease(.seconds(500)))
  }

  @Test mutating func `silence counts only while the log is read`() {
    read(0...4)
    let early = ownership.tick(.seconds(4), current: EpochID(9), using: &random)
    #expect(early == .nothing)
    // It was cut off from 4 to 20.
    let afterCut = ownership.tick(.seconds(20), current: EpochID(9), using: &random)
    #expect(afterCut == .nothing)
    read(20...24)
    let stillEarly = ownership.tick(.seconds(24), current: EpochID(9), using: &random)
    #expect(stillEarly == .nothing)
    read(25...25)
    guard
      case .claim(_, EpochID(9)) = ownership.tick(.seconds(25), current: EpochID(9), using: &random)
    else {
      Issue.record("no claim")
      return
    }
  }

  @Test func `timetokens are multiples of 100, rise, and follow the time up to the bound`() {
    func next(_ highWater: Int64, _ time: Int64, _ ownerTime: Int64?) -> Int64 {
      var rule = TimetokenRule(highWater: highWater, time: time, ownerTime: ownerTime)
      return rule.take()
    }
    #expect(next(1_000, 5, nil) == 1_100)
    #expect(next(1_000, 1_101, nil) == 1_200)
    #expect(next(1_050, 0, nil) == 1_200)
    #expect(next(1_000, 10_000_000_000, 0) == TimetokenRule.bound)
    #expect(next(1_000, 10_000_000_000, nil) == 10_000_000_000)
    #expect(next(TimetokenRule.greatest, 0, nil) == TimetokenRule.greatest)
  }

  @Test func `a member that lags is expelled, and the log is trimmed behind the others`() throws {
    var limits = TrimPlan.Limits()
    limits.step = 10
    limits.longestLag = .seconds(60)
    var plan = TrimPlan(limits)
    func state(_ safe: [UInt64]) throws -> ShardState {
      var applier = Applier()
      var tables = SimulatedTables(rules: .all)
      var outcomes: [Applier.Outcome] = []
      var entries: [LogEntry] = []
      // A member cannot have more than there is.
      var bodies = (0..<300).map { Record.Body.heartbeat(EpochID(1), beat: $0) }
      bodies += safe.enumerated().map { .join(MemberID(UInt128($0)), safe: $1) }
      for (index, body) in bodies.enumerated() {
        let record = Record(time: 0, body)
        let part = RecordPart(isContinued: false, follows: nil, share: record.encoded)
        let sealed = try SealedRecord(
          RecordNumber(AuthorID(1), UInt64(index + 1)), key: 1, sealed: part.bytes)
        entries.append(LogEntry(sequence: UInt64(index + 1), storedAt: 0, sealed))
      }
      let batch = Applier.Batch(
        first: 1, last: UInt64(entries.count), entries: entries, sentAt: .zero, receivedAt: .zero)
      try applier.take(batch, syncInterval: .zero, into: &tables, outcomes: &outcomes) { $0.sealed }
      return applier.state
    }
    let first = plan.plan(try state([100, 100, 5]), .zero)
    #expect(first == [])
    let second = plan.plan(try state([200, 200, 5]), .seconds(30))
    #expect(second == [])
    let bodies = plan.plan(try state([300, 299, 5]), .seconds(61))
    #expect(bodies == [.leave(MemberID(2)), .trim(through: 299)])
  }
}
