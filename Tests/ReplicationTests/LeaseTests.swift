import Replication
import TestSupport
import Testing

@Suite struct LeaseTests {
  private static func candidate(_ number: UInt64, _ key: String? = nil) -> LeaseTable.Candidate {
    LeaseTable.Candidate(
      message: MessageOrigin(RecordNumber(AuthorID(1), number), 0), orderingKey: key)
  }

  private static func settlement(
    _ lease: UInt128, epoch: UInt128 = 1, _ outcome: Settlement.Outcome = .acknowledged
  ) -> Settlement {
    Settlement(
      consumer: "c", message: candidate(1).message, lease: LeaseID(lease), epoch: EpochID(epoch),
      outcome: outcome)
  }

  private var random = SeededRandom(seed: 1)
  private var table = LeaseTable()

  private mutating func lease(_ candidates: [LeaseTable.Candidate]) -> [LeaseTable.Held] {
    table.lease(candidates, to: "c", most: 9, until: .seconds(10), using: &random)
  }

  @Test mutating func `a message is leased once, until its settlement is read back`() throws {
    let held = try #require(lease([Self.candidate(1)]).first)
    let second = lease([Self.candidate(1)])
    #expect(second.isEmpty)
    #expect(table.decide(held.lease) == .write(held.key))
    table.begin(held.lease, as: RecordNumber(AuthorID(2), 1))
    #expect(table.decide(held.lease) == .wait(RecordNumber(AuthorID(2), 1)))
    let isExtended = table.extend(held.lease, until: .seconds(99), now: .seconds(1))
    #expect(!isExtended)
    #expect(table.ended(.seconds(99)).isEmpty)
    let third = lease([Self.candidate(1)])
    #expect(third.isEmpty)
    table.remove(held.lease)
    #expect(table.decide(held.lease) == .unknown)
    let last = lease([Self.candidate(1)])
    #expect(last.count == 1)
  }

  @Test mutating func `a lease that has ended counts until its end is written`() throws {
    let held = try #require(lease([Self.candidate(1)]).first)
    let isExtended = table.extend(held.lease, until: .seconds(20), now: .seconds(9))
    #expect(isExtended)
    #expect(table.ended(.seconds(19)).isEmpty)
    #expect(table.ended(.seconds(20)).map(\.lease) == [held.lease])
    #expect(table.decide(held.lease) == .write(held.key))
    // Its end is being written.
    let isExtendedAgain = table.extend(held.lease, until: .seconds(30), now: .seconds(20))
    #expect(!isExtendedAgain)
  }

  @Test mutating func `a late settlement of an earlier lease does not block the next one`() throws {
    let first = try #require(lease([Self.candidate(1)]).first)
    table.remove(first.lease)
    let second = try #require(lease([Self.candidate(1)]).first)
    table.begin(first.lease, as: RecordNumber(AuthorID(2), 1))
    #expect(table.decide(second.lease) == .write(second.key))
    #expect(table.ended(.seconds(10)).map(\.lease) == [second.lease])
  }

  @Test mutating func `of the messages with one key, the first is leased alone`() throws {
    let candidates = [
      Self.candidate(1, "k"), Self.candidate(2, "k"), Self.candidate(3), Self.candidate(4, "l"),
    ]
    let held = lease(candidates)
    #expect(
      held.map(\.key.message) == [candidates[0], candidates[2], candidates[3]].map(\.message))
    let second = lease(candidates)
    #expect(second.isEmpty)
    table.remove(held[0].lease)
    // The first was released: it comes first again.
    let again = lease(candidates)
    #expect(again.map(\.key.message) == [candidates[0].message])
  }

  @Test func `a settlement counts once, in its epoch, before its lease has ended`() throws {
    let epoch = EpochID(1)
    func decide(
      _ settlement: Settlement, _ delivery: DeliveryState?, earlier: Settlement.Kind? = nil
    ) -> SettlementRule.Decision {
      SettlementRule.decide(settlement, delivery, earlier: earlier, epoch: epoch)
    }
    let first = decide(Self.settlement(7), DeliveryState())
    guard case .counts(let done) = first else {
      Issue.record("\(first)")
      return
    }
    #expect(done.end == .acknowledged)
    #expect(decide(Self.settlement(7), done, earlier: .acknowledged) == .repeated)
    #expect(decide(Self.settlement(7), nil, earlier: .acknowledged) == .repeated)
    #expect(decide(Self.settlement(8), done) == .refused)
    #expect(decide(Self.settlement(7), nil) == .refused)
    #expect(decide(Self.settlement(7, epoch: 2), DeliveryState()) == .refused)
    let ended = decide(Self.settlement(7, .leaseEnded), DeliveryState())
    guard case .counts(let next) = ended else {
      Issue.record("\(ended)")
      return
    }
    #expect(next.attemptCount == 1 && next.end == nil)
    // The same lease, but not what counted.
    #expect(decide(Self.settlement(7), next, earlier: .leaseEnded) == .refused)
  }

  @Test(arguments: [Settlement.Outcome.leaseEnded, .released(countsAttempt: true, reason: "no")])
  func `the last attempt makes a dead letter`(_ outcome: Settlement.Outcome) {
    let decision = SettlementRule.decide(
      Self.settlement(7, outcome), DeliveryState(), earlier: nil, epoch: EpochID(1), mostAttempts: 1
    )
    guard case .counts(let next) = decision else {
      Issue.record("\(decision)")
      return
    }
    #expect(next.end == .dead)
  }
}
