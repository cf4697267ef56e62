internal import DequeModule

/// Calls that wait for the one thread that makes them, in turns of the applications: one with many leaves room for the
/// others.
struct TurnQueue: Sendable {
  typealias Call = @Sendable () -> Void

  /// The most short calls of a turn; a long call is a turn.
  static let shortCallCount = 64

  /// Those who take turns: the short calls of an application, and its long ones.
  private struct Line: Hashable {
    let application: String
    let isLong: Bool
  }

  private var waiting: [Line: Deque<Call>] = [:]
  /// The lines with calls, the next one first.
  private var order: Deque<Line> = []

  var isEmpty: Bool { order.isEmpty }

  mutating func append(_ call: @escaping Call, isLong: Bool = false, of application: String) {
    let line = Line(application: application, isLong: isLong)
    if waiting[line] == nil { order.append(line) }
    waiting[line, default: []].append(call)
  }

  /// Takes the calls of the next turn.
  mutating func next() -> [Call] {
    guard let line = order.popFirst(), var calls = waiting.removeValue(forKey: line) else {
      return []
    }
    let turn = Array(calls.prefix(line.isLong ? 1 : Self.shortCallCount))
    calls.removeFirst(turn.count)
    if !calls.isEmpty {
      waiting[line] = calls
      order.append(line)
    }
    return turn
  }
}
