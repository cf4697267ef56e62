import Replication
import Testing
import VaultCrypto

/// Records that no member has sealed.
@Suite struct ForgedRecordTests {
  @Test func `what no member has sealed is skipped, and its number stays free`() throws {
    let author = AuthorID(9)
    let seal = RingSeal(KeyRing(newShard: .system), random: .system)
    let part = RecordPart(
      isContinued: false, follows: nil,
      share: Record(time: 1, .join(MemberID(1), safe: nil)).encoded)
    let honest = try seal.seal(part.bytes, as: RecordNumber(author, 1), under: 1)
    var changed = honest.bytes
    changed[changed.count - 1] ^= 1
    let forged = [
      try SealedRecord(reading: changed),
      try SealedRecord(RecordNumber(author, 1), key: 1, sealed: []),
      try SealedRecord(RecordNumber(author, 1), key: 99, sealed: [1, 2, 3]),
    ]
    var applier = Applier()
    var tables = SimulatedTables(rules: .all)
    var outcomes: [Applier.Outcome] = []
    let entries = zip(forged + [honest], UInt64(1)...).map {
      LogEntry(sequence: $1, storedAt: 1, $0)
    }
    while applier.state.position < 4 {
      let read = entries.dropFirst(max(0, Int(applier.readPlace) - 1))
      try applier.take(
        Applier.Batch(first: 1, last: 4, entries: Array(read), sentAt: .zero, receivedAt: .zero),
        syncInterval: .zero, into: &tables, outcomes: &outcomes, open: seal.open)
    }
    let gaps = outcomes.count { if case .gap = $0 { true } else { false } }
    #expect(gaps == 3, "\(outcomes)")
    guard case .applied(RecordNumber(author, 1), _, _)? = outcomes.last else {
      Issue.record("the honest record was not applied")
      return
    }
    #expect(applier.readPlace == 4)
  }

  @Test func `what was changed on the way to one member is read again, and then applied`() throws {
    let author = AuthorID(9)
    let seal = RingSeal(KeyRing(newShard: .system), random: .system)
    let part = RecordPart(
      isContinued: false, follows: nil,
      share: Record(time: 1, .join(MemberID(1), safe: nil)).encoded)
    let log = try (1...6).map { number in
      LogEntry(
        sequence: number, storedAt: 1,
        try seal.seal(part.bytes, as: RecordNumber(author, number), under: 1))
    }
    // A bit of each byte: the name, which is in the clear, and what is sealed.
    for index in log[2].record.bytes.indices {
      var applier = Applier()
      var tables = SimulatedTables(rules: .all)
      var outcomes: [Applier.Outcome] = []
      var bytes = log[2].record.bytes
      bytes[index] ^= 1
      var seen = log
      seen[2] = LogEntry(sequence: 3, storedAt: 1, try SealedRecord(reading: bytes))
      while applier.state.position < 6 {
        let read = seen.dropFirst(max(0, Int(applier.readPlace) - 1))
        try applier.take(
          Applier.Batch(first: 1, last: 6, entries: Array(read), sentAt: .zero, receivedAt: .zero),
          syncInterval: .seconds(1), into: &tables, outcomes: &outcomes, open: seal.open)
        seen = log
      }
      #expect(applier.state.lastNumber(of: author) == 6, "byte \(index)")
    }
  }

  @Test func `a record under a key that is missing stops the member`() throws {
    let seal = RingSeal(KeyRing(newShard: .system), random: .system)
    let record = try seal.seal([0], as: RecordNumber(AuthorID(9), 1), under: 1)
    var applier = Applier()
    var tables = SimulatedTables(rules: .all)
    var outcomes: [Applier.Outcome] = []
    let batch = Applier.Batch(
      first: 1, last: 1, entries: [LogEntry(sequence: 1, storedAt: 1, record)], sentAt: .zero,
      receivedAt: .zero)
    #expect(throws: Applier.Alarm.self) {
      try applier.take(
        batch, syncInterval: .zero, into: &tables, outcomes: &outcomes
      ) { _ in throw MissingKey() }
    }
  }

  private struct MissingKey: Error {}
}
