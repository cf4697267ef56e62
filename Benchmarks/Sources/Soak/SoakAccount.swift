import MessagingQueue
import Synchronization

/// The counts of publishers and receivers.
///
/// Its size does not depend on the running time.
final class SoakAccount: Sendable {
  struct Summary: Sendable {
    var acknowledged = 0
    var failed = 0
    /// Messages that were successfully acknowledged more than once.
    var repeated = 0
  }

  struct Minute: Sendable {
    var acknowledged = 0
    var publish = LatencyHistogram()
    var delivery = LatencyHistogram()
  }

  private struct State {
    var published = 0
    var summary = Summary()
    var minute = Minute()
    var seen: [NumberSet]
  }

  private let state: Mutex<State>

  init(publisherCount: Int) {
    state = Mutex(State(seen: Array(repeating: NumberSet(), count: publisherCount)))
  }

  /// Messages that are published, or being published, and not acknowledged.
  var underWay: Int { state.withLock { $0.published - $0.summary.acknowledged } }

  var summary: Summary { state.withLock { $0.summary } }

  func publishing(_ count: Int) { state.withLock { $0.published += count } }

  func notPublished(_ count: Int) { state.withLock { $0.published -= count } }

  func published(in duration: Duration) { state.withLock { $0.minute.publish.add(duration) } }

  func failing(_ count: Int) { state.withLock { $0.summary.failed += count } }

  func delivered(_ delivery: Delivery) {
    guard delivery.attempt == 1, let payload = SoakPayload(delivery.payload) else { return }
    state.withLock { $0.minute.delivery.add(payload.age) }
  }

  func acknowledged(_ deliveries: [Delivery]) {
    state.withLock { state in
      for delivery in deliveries {
        guard let payload = SoakPayload(delivery.payload),
          state.seen.indices.contains(payload.publisher)
        else { continue }
        if state.seen[payload.publisher].insert(payload.number) {
          state.summary.acknowledged += 1
          state.minute.acknowledged += 1
        } else {
          state.summary.repeated += 1
        }
      }
    }
  }

  /// The counts since the last call.
  func takeMinute() -> Minute {
    state.withLock { state in
      defer { state.minute = Minute() }
      return state.minute
    }
  }
}

/// A set of numbers that arrive nearly in order: all numbers below an end, and some beyond it.
struct NumberSet: Sendable {
  private var end = 0
  private var beyond: Set<Int> = []

  /// Inserts a number.
  ///
  /// - Returns: whether the number was new.
  mutating func insert(_ number: Int) -> Bool {
    guard number >= end, beyond.insert(number).inserted else { return false }
    while beyond.remove(end) != nil { end += 1 }
    return true
  }
}
