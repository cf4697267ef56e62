internal import Synchronization

/// Waits for `work`, but not longer than `limit`; the work goes on in any case.
///
/// Unlike a task group it comes back at the limit, and a cancelled caller waits like any other: what
/// closes things must not be skipped because somebody was in a hurry.
///
/// - Returns: whether the work is done.
package func finishes(
  within limit: Duration, _ work: @escaping @Sendable () async -> Void
) async -> Bool {
  await withCheckedContinuation { caller in
    let answer = FirstAnswer(caller)
    let timer = Task.detached {
      try? await Task.sleep(for: limit, clock: .continuous)
      answer.give(false)
    }
    Task.detached {
      await work()
      answer.give(true)
      timer.cancel()
    }
  }
}

/// Gives the first of two answers to who waits.
private final class FirstAnswer: Sendable {
  private let caller: Mutex<CheckedContinuation<Bool, Never>?>

  init(_ caller: CheckedContinuation<Bool, Never>) {
    self.caller = Mutex(caller)
  }

  func give(_ answer: Bool) {
    caller.withLock { $0.take() }?.resume(returning: answer)
  }
}
