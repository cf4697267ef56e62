import Testing

@testable import MessagingQueue

@Suite struct PendingWriteQueueTests {
  @Test func `operations leave in their order, whatever is removed in between`() {
    var queue = PendingWriteQueue()
    for number in 1...9 { queue.append(write(UInt64(number))) }
    #expect(queue.popFirst()?.number == 1)
    #expect(queue.popFirst()?.number == 2)
    #expect(queue.remove(5)?.number == 5)
    #expect(queue.remove(5) == nil)
    #expect(queue.remove(1) == nil, "it was removed")
    queue.append(write(10))
    #expect(queue.count == 7)
    #expect(queue.last?.number == 10)
    #expect(queue.removeAll(through: 6).map(\.number) == [3, 4, 6])
    #expect(queue.remove(8)?.number == 8)
    var rest: [UInt64] = []
    while let next = queue.popFirst() { rest.append(next.number) }
    #expect(rest == [7, 9, 10])
    #expect(queue.isEmpty)
    #expect(queue.last == nil)
    #expect(queue.removeAll(through: .max).isEmpty)
  }

  @Test func `removing all operations moves each of them at most once`() {
    var queue = PendingWriteQueue()
    for number in 1...1000 { queue.append(write(UInt64(number))) }
    var moveCount = 0
    while !queue.isEmpty {
      let before = queue.writes.count
      _ = queue.popFirst()
      if queue.writes.count < before { moveCount += queue.writes.count }
    }
    #expect(moveCount <= 1000)
  }

  @Test func `a queue that is never empty does not grow`() {
    var queue = PendingWriteQueue()
    for number in 1...3 { queue.append(write(UInt64(number))) }
    for number in 4...1000 {
      queue.append(write(UInt64(number)))
      _ = queue.popFirst()
    }
    #expect(queue.count == 3)
    #expect(queue.writes.count < 10)
  }

  @Test func `the queue releases an operation that was taken`() {
    final class Payload: Sendable {}
    weak var held: Payload?
    var queue = PendingWriteQueue()
    do {
      let payload = Payload()
      held = payload
      queue.append(write(1) { withExtendedLifetime(payload) {} })
    }
    for number in 2...5 { queue.append(write(UInt64(number))) }
    #expect(held != nil)
    let number = queue.popFirst()?.number
    #expect(number == 1)
    #expect(held == nil)
  }

  private func write(_ number: UInt64, _ fail: @escaping @Sendable () -> Void = {}) -> PendingWrite
  {
    PendingWrite(
      number: number, operation: "testing", byteCount: 0, isDurable: true, messages: nil,
      perform: { _, _ in {} }, fail: { _ in fail() })
  }
}
