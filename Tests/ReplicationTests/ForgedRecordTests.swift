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
    let batch = Applier.Batch(
      first: 1, last: 4, entries: entries, sentAt: .zero, receivedAt: .zero)
    try applier.take(
      batch, syncInterval: .zero, into: &tables, outcomes: &outcomes, open: seal.open)
    let gaps = outcomes.count { if case .gap = $0 { true } else { false } }
    #expect(gaps == 3, "\(outcomes)")
    guard case .applied(RecordNumber(author, 1), _, _)? = outcomes.last else {
      Issue.record("the honest record was not applied")
      return
    }
    #expect(applier.readPlace == 4)
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
