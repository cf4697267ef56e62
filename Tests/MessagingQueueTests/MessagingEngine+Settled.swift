import MessagingQueue

extension MessagingEngine {
  /// The state after the stop under way: on a busy machine the timeout of a lock can end before it.
  func settledState() async throws -> EngineState {
    while state == .stopping { try await Task.sleep(for: .milliseconds(1)) }
    return state
  }
}
