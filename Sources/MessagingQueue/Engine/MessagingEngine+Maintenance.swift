internal import FileLayer
internal import Logging
internal import Synchronization

extension MessagingEngine {
  /// Has this engine do a round of ``maintain()`` at each interval for as long as it runs, if it is the
  /// one that gets the lock.
  ///
  /// - Parameter lock: takes the lock, or returns nil at once while another engine has it.
  nonisolated func beginMaintenance(_ lock: @escaping @Sendable () -> FileLock?) {
    let interval = configuration.maintenanceInterval
    let task = Task { [weak self] in
      var held: FileLock?
      while (try? await Task.sleep(for: interval)) != nil, let self {
        held = held ?? lock()
        if held == nil { continue }
        do throws(EngineError) {
          let count = try await self.maintain()
          self.configuration.logger.debug("maintenance: removed \(count) messages")
        } catch {
          // A full disk or a busy database: the next round finds what this one has left.
          self.configuration.logger.debug("maintenance: \(error)")
        }
      }
      held?.release()
    }
    upkeep.withLock { $0 = task }
  }

  /// Ends the rounds; one that is under way ends with its transaction.
  nonisolated func endMaintenance() {
    upkeep.withLock { $0.take() }?.cancel()
  }
}
