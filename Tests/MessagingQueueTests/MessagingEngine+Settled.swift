import MessagingQueue

extension MessagingEngine {
  /// Its state once the stop that is under way is over: on a busy machine a lock's patience may end before.
  func settledState() async throws -> EngineState {
    while state == .stopping { try await Task.sleep(for: .milliseconds(1)) }
    return state
  }
}
