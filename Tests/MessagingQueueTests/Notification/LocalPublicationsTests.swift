import MessagingQueue
import Testing

@Suite struct LocalPublicationsTests {
  let changes = LocalPublications()
  let list: LocalPublicationList

  init() { list = LocalPublicationList(changes) }

  private func note(_ previous: Int64, _ range: ClosedRange<Int64>) {
    changes.note(publication(previous, range))
  }

  private func publication(
    _ previous: Int64, _ range: ClosedRange<Int64>
  ) -> LocalPublications.PublishedRange {
    LocalPublications.PublishedRange(
      previous: previous, first: range.lowerBound, last: range.upperBound)
  }

  @Test func `local publications are joined unless others lie between`() {
    note(0, 1...4)
    changes.settle()
    // Three operations that shared a commit.
    note(4, 7...9)
    note(9, 10...10)
    note(10, 12...12)
    changes.settle()
    note(15, 16...16)
    changes.settle()
    #expect(list.ranges(after: 0) == [1...12, 16...16])
  }

  @Test func `ranges before the reader's place are dropped`() {
    note(0, 1...4)
    note(9, 10...12)
    #expect(list.ranges(after: 4) == [10...12])
    #expect(list.ranges(after: 0) == [10...12])
  }

  @Test func `a rolled-back publication is removed, as its timetokens can be assigned again`() {
    note(0, 1...4)
    changes.settle()
    note(4, 5...9)
    changes.rollBack(publication(4, 5...9))
    #expect(list.ranges(after: 0) == [1...4])
    // After a rollback to a savepoint, the next publication begins at the same place.
    note(4, 5...9)
    note(4, 5...6)
    changes.settle()
    #expect(list.ranges(after: 0) == [1...6])
  }
}
