internal import Logging
internal import Synchronization

extension MessagingEngine {
  /// How much longer than a count of what is there the pause behind it is at least: counting a deep
  /// database takes no more than a hundredth of a processor.
  private static let pauseFactor = 100

  /// Sets the gauges at each ``EngineConfiguration/metricsInterval`` for as long as the engine runs, if
  /// anybody takes its metrics.
  nonisolated func beginObservation() {
    guard metrics != nil else { return }
    let interval = configuration.metricsInterval
    let task = Task { [weak self] in
      var pause = Duration.zero
      while (try? await Task.sleep(for: pause)) != nil, let self {
        let start = ContinuousClock.now
        do throws(EngineError) {
          try await self.observe()
        } catch {
          self.configuration.logger.debug("observation: \(error)")
        }
        pause = max(interval, (.now - start) * Self.pauseFactor)
      }
    }
    sampling.withLock { $0 = task }
  }

  /// Counts what is there and sets the gauges; nothing, if nobody takes them.
  package nonisolated func observe() async throws(EngineError) {
    guard let metrics else { return }
    let tables = try running().tables
    metrics.gauges.set(try await log.read(during: "counting") { try tables.statistics($0) })
  }

  /// Ends that, and gives the gauges up.
  nonisolated func endObservation() {
    sampling.withLock { $0.take() }?.cancel()
    metrics?.gauges.retire()
  }
}
