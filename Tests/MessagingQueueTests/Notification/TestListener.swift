import Foundation
import MessagingQueue

/// Passes one event after another to the thread that waits.
final class TestListener: NotificationListener, @unchecked Sendable {
  // The condition guards them.
  private let condition = NSCondition()
  private var events: [NotificationEvent] = []

  func post(_ event: NotificationEvent) {
    condition.withLock {
      events.append(event)
      condition.signal()
    }
  }

  func wait(upTo timeout: Duration?) -> NotificationEvent {
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
