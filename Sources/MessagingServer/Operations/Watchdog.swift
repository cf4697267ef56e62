internal import FileLayer
internal import NIOCore
internal import Synchronization

/// Tells the service manager that the server works, while it does: sd_watchdog_enabled(3).
struct Watchdog: Sendable {
  /// How long the service manager waits for a sign before it ends the process.
  let limit: Duration

  /// Nil if the service manager expects no signs of this process.
  ///
  /// - Parameter environment: `WATCHDOG_USEC` and `WATCHDOG_PID`.
  init?(_ environment: [String: String], processID: Int32) {
    guard let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 0
    else { return nil }
    if let watched = environment["WATCHDOG_PID"], Int32(watched) != processID { return nil }
    limit = .microseconds(microseconds)
  }

  /// Gives a sign at each half of the limit, if every event loop answers in that time.
  func run(on group: any EventLoopGroup, notify: @Sendable (String) -> Void) async {
    while !Task.isCancelled {
      if await answers(group) { notify("WATCHDOG=1") }
      try? await Task.sleep(for: limit / 2)
    }
  }

  /// Whether every event loop runs a task within half of the limit.
  func answers(_ group: any EventLoopGroup) async -> Bool {
    let failed = Mutex(false)
    let ended = await completes(within: limit / 2) {
      for loop in group.makeIterator() {
        do {
          try await loop.submit {}.get()
        } catch {
          failed.withLock { $0 = true }
        }
      }
    }
    return ended && !failed.withLock(\.self)
  }
}
