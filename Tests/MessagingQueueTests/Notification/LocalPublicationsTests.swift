import MessagingQueue
import Testing

@Suite struct LocalPublicationsTests {
  let changes = LocalPublications()
  let list: UInt64

  init() { list = changes.begin() }

  private func note(_ previous: Int64, _ range: ClosedRange<Int64>) {
    changes.note(publication(previous, range))
  }

  private func publication(
    _ previous: Int64, _ range: ClosedRange<Int64>
  ) -> LocalPublications.Publication {
    LocalPublications.Publication(
      previous: previous, first: range.lowerBound, last: range.upperBound)
  }

  @Test func `own publications are joined, unless another's lie between`() {
    note(0, 1...4)
    changes.settle()
    // Three that shared a commit.
    note(4, 7...9)
    note(9, 10...10)
    note(10, 12...12)
    changes.settle()
    note(15, 16...16)
    changes.settle()
    #expect(changes.ranges(list, after: 0) == [1...12, 16...16])
  }

  @Test func `what one has passed is forgotten`() {
    note(0, 1...4)
    note(9, 10...12)
    #expect(changes.ranges(list, after: 4) == [10...12])
    #expect(changes.ranges(list, after: 0) == [10...12])
  }

  @Test func `what is rolled back is not one's own: another may be given its timetokens`() {
    note(0, 1...4)
    changes.settle()
    note(4, 5...9)
    changes.rollBack(publication(4, 5...9))
    #expect(changes.ranges(list, after: 0) == [1...4])
    // A savepoint: the next publication of the transaction begins where that began.
    note(4, 5...9)
    note(4, 5...6)
    changes.settle()
    #expect(changes.ranges(list, after: 0) == [1...6])
  }
}
