import Foundation
import MessagingQueue

/// Hands one event after another to the thread that waits.
final class TestListener: NotificationListener, @unchecked Sendable {
  // Guarded by the condition.
  private let condition = NSCondition()
  private var events: [BellEvent] = []

  func post(_ event: BellEvent) {
    condition.withLock {
      events.append(event)
      condition.signal()
    }
  }

  func wait(upTo timeout: Duration?) -> BellEvent {
    condition.withLock {
      let deadline = Date(timeIntervalSinceNow: timeout.map { $0 / .seconds(1) } ?? 1e9)
      while events.isEmpty {
        if !condition.wait(until: deadline) { return .timedOut }
      }
      return events.removeFirst()
    }
  }

  func interrupt() { post(.interrupted) }
}
