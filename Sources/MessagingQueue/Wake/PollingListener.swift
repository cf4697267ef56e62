internal import Dispatch

/// Where nobody can be heard: it only waits, so that its thread looks at the database in between.
final class PollingListener: BellListener {
  private let interruption = DispatchSemaphore(value: 0)

  func wait(upTo timeout: Duration?) -> BellEvent {
    let deadline: DispatchTime =
      timeout.map { .now() + .milliseconds(Int(clamping: $0.roundedUpMilliseconds)) }
      ?? .distantFuture
    return interruption.wait(timeout: deadline) == .success ? .interrupted : .timedOut
  }

  func interrupt() {
    interruption.signal()
  }
}
