internal import Synchronization
package import SystemPackage

/// The one log of what several layers did to the disk, in order, and the place where a test makes
/// a step fail or the world end.
package final class FileRecorder: Sendable {
  /// What happens at the event with a given number, counted from 0 among those that may fail.
  package enum Fault: Sendable, Equatable {
    /// The step fails with this reason; the next ones work.
    case failure(atEvent: Int, Errno)
    /// From this step on all fail with this reason, until ``FileRecorder/lift()``.
    case failures(fromEvent: Int, Errno)
    /// A read fails with this reason, counted from 0 among the reads; the next ones work.
    case readFailure(atRead: Int, Errno)
    /// From this read on all fail with this reason, until ``FileRecorder/lift()``.
    case readFailures(fromRead: Int, Errno)
    /// The process dies before this step: it and all that follow do nothing and fail.
    case crash(atEvent: Int)
  }

  private struct State {
    var events: [FileEvent] = []
    var failableCount = 0
    var readCount = 0
    var hasCrashed = false
    var hasStruck = false
    var fault: Fault?
  }

  private let state: Mutex<State>

  package init(fault: Fault? = nil) {
    state = Mutex(State(fault: fault))
  }

  /// All events so far that took place.
  package var events: [FileEvent] { state.withLock { $0.events } }

  /// How many events could have failed: the numbers that a fault may name are below it.
  package var failableEventCount: Int { state.withLock { $0.failableCount } }

  /// How many reads there were: the numbers that a fault may name are below it.
  package var readCount: Int { state.withLock { $0.readCount } }

  /// Whether the fault has struck.
  package var hasStruck: Bool { state.withLock { $0.hasStruck } }

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
        switch state.fault {
        case .failure(number, let errno):
          state.hasStruck = true
          return errno
        case .failures(let first, let errno) where number >= first:
          state.hasStruck = true
          return errno
        case .crash(number):
          state.hasStruck = true
          state.hasCrashed = true
          return .ioError
        default: break
        }
      }
      state.events.append(event)
      return nil
    }
  }

  /// Asks for leave before a read, which is not logged.
  ///
  /// - Returns: nil when it may go ahead, else the reason it must fail with.
  package func admitRead() -> Errno? {
    state.withLock { state in
      if state.hasCrashed { return .ioError }
      let number = state.readCount
      state.readCount += 1
      switch state.fault {
      case .readFailure(number, let errno):
        state.hasStruck = true
        return errno
      case .readFailures(let first, let errno) where number >= first:
        state.hasStruck = true
        return errno
      default: return nil
      }
    }
  }

  /// Takes the fault's cause away: all that follows works, unless the process has crashed.
  package func lift() {
    state.withLock { $0.fault = nil }
  }

  /// Writes a note into the log.
  package func mark(_ note: String) {
    _ = admit(.mark(note))
  }
}
