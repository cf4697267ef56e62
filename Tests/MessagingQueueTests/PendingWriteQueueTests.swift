import Testing

@testable import MessagingQueue

@Suite struct PendingWriteQueueTests {
  @Test func `verbs leave in the order in which they came, whatever is taken out between`() {
    var line = PendingWriteQueue()
    for number in 1...9 { line.append(verb(UInt64(number))) }
    #expect(line.popFirst()?.number == 1)
    #expect(line.popFirst()?.number == 2)
    #expect(line.remove(5)?.number == 5)
    #expect(line.remove(5) == nil)
    #expect(line.remove(1) == nil, "it is gone")
    line.append(verb(10))
    #expect(line.count == 7)
    #expect(line.last?.number == 10)
    #expect(line.removeAll(through: 6).map(\.number) == [3, 4, 6])
    #expect(line.remove(8)?.number == 8)
    var rest: [UInt64] = []
    while let next = line.popFirst() { rest.append(next.number) }
    #expect(rest == [7, 9, 10])
    #expect(line.isEmpty)
    #expect(line.last == nil)
    #expect(line.removeAll(through: .max).isEmpty)
  }

  @Test func `taking all that wait moves none of them more than once`() {
    var line = PendingWriteQueue()
    for number in 1...1000 { line.append(verb(UInt64(number))) }
    var moveCount = 0
    while !line.isEmpty {
      let before = line.verbs.count
      _ = line.popFirst()
      if line.verbs.count < before { moveCount += line.verbs.count }
    }
    #expect(moveCount <= 1000)
  }

  @Test func `a line that is never empty does not grow with what passes through it`() {
    var line = PendingWriteQueue()
    for number in 1...3 { line.append(verb(UInt64(number))) }
    for number in 4...1000 {
      line.append(verb(UInt64(number)))
      _ = line.popFirst()
    }
    #expect(line.count == 3)
    #expect(line.verbs.count < 10)
  }

  @Test func `a verb that was taken is let go, with all that it holds`() {
    final class Payload: Sendable {}
    weak var held: Payload?
    var line = PendingWriteQueue()
    do {
      let payload = Payload()
      held = payload
      line.append(verb(1) { withExtendedLifetime(payload) {} })
    }
    for number in 2...5 { line.append(verb(UInt64(number))) }
    #expect(held != nil)
    let number = line.popFirst()?.number
    #expect(number == 1)
    #expect(held == nil)
  }

  private func verb(_ number: UInt64, _ fail: @escaping @Sendable () -> Void = {}) -> PendingWrite {
    PendingWrite(
      number: number, operation: "testing", byteCount: 0, messages: nil,
      perform: { _, _ in {} }, fail: { _ in fail() })
  }
}
