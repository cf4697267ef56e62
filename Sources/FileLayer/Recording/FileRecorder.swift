internal import Synchronization
package import SystemPackage

/// The one log of what several layers did to the disk, in order, and the place where a test makes
/// a step fail or the world end.
package final class FileRecorder: Sendable {
  /// What happens at the event with a given number, counted from 0 among those that may fail.
  package enum Fault: Sendable, Equatable {
    /// The step fails with this reason; the next ones work.
    case failure(atEvent: Int, Errno)
    /// The process dies before this step: it and all that follow do nothing and fail.
    case crash(atEvent: Int)
  }

  private struct State {
    var events: [FileEvent] = []
    var failableCount = 0
    var hasCrashed = false
  }

  private let fault: Fault?
  private let state = Mutex(State())

  package init(fault: Fault? = nil) {
    self.fault = fault
  }

  /// All events so far that took place.
  package var events: [FileEvent] { state.withLock { $0.events } }

  /// How many events could have failed: the numbers that a fault may name are below it.
  package var failableEventCount: Int { state.withLock { $0.failableCount } }

  /// Whether the planned crash has happened.
  package var hasCrashed: Bool { state.withLock { $0.hasCrashed } }

  /// Asks for leave before a step, and logs it when it is given.
  ///
  /// - Returns: nil when the step may go ahead, else the reason it must fail with. A crash answers
  ///   `EIO`, and ``hasCrashed`` is true from then on.
  package func admit(_ event: FileEvent) -> Errno? {
    state.withLock { state in
      if state.hasCrashed { return .ioError }
      if event.mayFail {
        let number = state.failableCount
        state.failableCount += 1
        switch fault {
        case .failure(number, let errno): return errno
        case .crash(number):
          state.hasCrashed = true
          return .ioError
        default: break
        }
      }
      state.events.append(event)
      return nil
    }
  }

  /// Writes a note into the log.
  package func mark(_ note: String) {
    _ = admit(.mark(note))
  }
}
