import Testing

@testable import MessagingQueue

@Suite struct WaitingLineTests {
  @Test func `verbs leave in the order in which they came, whatever is taken out between`() {
    var line = WaitingLine()
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

  private func verb(_ number: UInt64) -> WaitingVerb {
    WaitingVerb(
      number: number, operation: "testing", byteCount: 0, messages: nil,
      perform: { _, _ in {} }, fail: { _ in })
  }
}
