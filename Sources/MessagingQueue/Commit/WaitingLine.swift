/// Verbs in the order in which they came; taking the first costs the same however many there are.
struct WaitingLine {
  private(set) var verbs: [WaitingVerb?] = []
  /// Where the first one is; what lies before has been taken.
  private var start = 0

  var isEmpty: Bool { start == verbs.count }
  var count: Int { verbs.count - start }
  var last: WaitingVerb? { isEmpty ? nil : verbs[verbs.count - 1] }

  mutating func append(_ verb: WaitingVerb) { verbs.append(verb) }

  mutating func popFirst() -> WaitingVerb? {
    if isEmpty { return nil }
    let first = verbs[start].take()
    start += 1
    // Moving the rest once for each half that has gone costs a move for each verb.
    if start * 2 >= verbs.count {
      verbs.removeFirst(start)
      start = 0
    }
    return first
  }

  /// Takes out the one with this number; nil if it is not there.
  mutating func remove(_ number: UInt64) -> WaitingVerb? {
    guard let index = verbs[start...].firstIndex(where: { $0?.number == number }) else {
      return nil
    }
    return verbs.remove(at: index)
  }

  /// Takes out the first ones, as long as their numbers are not beyond this one.
  mutating func removeAll(through last: UInt64) -> [WaitingVerb] {
    var taken: [WaitingVerb] = []
    while !isEmpty, let next = verbs[start], next.number <= last, let verb = popFirst() {
      taken.append(verb)
    }
    return taken
  }
}
