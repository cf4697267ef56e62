internal import Synchronization

/// Waits for `work` up to `limit`; the work continues in any case.
///
/// Unlike a task group, it returns at the limit. A cancelled caller waits too, because a
/// cancellation must not skip the work of closing.
///
/// - Returns: whether the work has finished.
package func completes(
  within limit: Duration, _ work: @escaping @Sendable () async -> Void
) async -> Bool {
  await withCheckedContinuation { caller in
    let answer = FirstAnswer(caller)
    let timer = Task.detached {
      try? await Task.sleep(for: limit, clock: .continuous)  // cancelled when the work ends
      answer.give(false)
    }
    Task.detached {
      await work()
      answer.give(true)
      timer.cancel()
    }
  }
}

/// Resumes a waiting caller with the first of two answers.
private final class FirstAnswer: Sendable {
  private let caller: Mutex<CheckedContinuation<Bool, Never>?>

  init(_ caller: CheckedContinuation<Bool, Never>) {
    self.caller = Mutex(caller)
  }

  func give(_ answer: Bool) {
    caller.withLock { $0.take() }?.resume(returning: answer)
  }
}
