internal import FileLayer
internal import Synchronization
package import SystemPackage

/// The log of the disk operations of several layers, in order, and the place where a test injects
/// faults.
package final class FileRecorder: Sendable {
  /// A fault at the event with a given number, counted from 0 among the events that can fail.
  package enum Fault: Sendable, Equatable {
    /// This step fails with this reason; the next ones work.
    case failure(atEvent: Int, Errno)
    /// This step and all later ones fail with this reason, until ``FileRecorder/lift()``.
    case failures(fromEvent: Int, Errno)
    /// The read with this number, counted from 0, fails with this reason; the next ones work.
    case readFailure(atRead: Int, Errno)
    /// This read and all later ones fail with this reason, until ``FileRecorder/lift()``.
    case readFailures(fromRead: Int, Errno)
    /// The process dies before this step: this step and all later ones do nothing and fail.
    case crash(atEvent: Int)
  }

  private struct State {
    var events: [FileEvent] = []
    var failableCount = 0
    var readCount = 0
    var hasCrashed = false
    var hasOccurred = false
    var fault: Fault?
  }

  private let state: Mutex<State>

  package init(fault: Fault? = nil) {
    state = Mutex(State(fault: fault))
  }

  /// Repeats some work with a fault at its first step, at its second one and so on, until no step is
  /// left.
  ///
  /// - Parameter errno: the reason with which the step fails; nil for a crash.
  /// - Returns: the number of steps that a fault hit.
  package static func atEachStep(
    failing errno: Errno? = nil, _ work: (FileRecorder, Int) async throws -> Void
  ) async throws -> Int {
    var step = 0
    while true {
      let failure = errno.map { Fault.failure(atEvent: step, $0) }
      let recorder = FileRecorder(fault: failure ?? .crash(atEvent: step))
      try await work(recorder, step)
      if !recorder.hasOccurred { return step }
      step += 1
    }
  }

  /// All events so far that took effect.
  package var events: [FileEvent] { state.withLock { $0.events } }

  /// The number of events that could have failed; a fault's event number must be below it.
  package var failableEventCount: Int { state.withLock { $0.failableCount } }

  /// The number of reads; a fault's read number must be below it.
  package var readCount: Int { state.withLock { $0.readCount } }

  /// Whether the fault has occurred.
  package var hasOccurred: Bool { state.withLock { $0.hasOccurred } }

  /// Whether the planned crash has occurred.
  package var hasCrashed: Bool { state.withLock { $0.hasCrashed } }

  /// Asks for permission before a step, and logs the step if it is permitted.
  ///
  /// - Returns: nil if the step is permitted, otherwise the reason with which it must fail. A crash
  ///   returns `EIO`, and ``hasCrashed`` is true from then on.
  package func admit(_ event: FileEvent) -> Errno? {
    state.withLock { state in
      if state.hasCrashed { return .ioError }
      if event.canFail {
        let number = state.failableCount
        state.failableCount += 1
        switch state.fault {
        case .failure(let first, let errno) where number == first,
          .failures(let first, let errno) where number >= first:
          state.hasOccurred = true
          return errno
        case .crash(number):
          state.hasOccurred = true
          state.hasCrashed = true
          return .ioError
        default: break
        }
      }
      state.events.append(event)
      return nil
    }
  }

  /// Asks for permission before a read, which is not logged.
  ///
  /// - Returns: nil if the read is permitted, otherwise the reason with which it must fail.
  package func admitRead() -> Errno? {
    state.withLock { state in
      if state.hasCrashed { return .ioError }
      let number = state.readCount
      state.readCount += 1
      switch state.fault {
      case .readFailure(let first, let errno) where number == first,
        .readFailures(let first, let errno) where number >= first:
        state.hasOccurred = true
        return errno
      default: return nil
      }
    }
  }

  /// Removes the fault: all later steps work, unless the process has crashed.
  package func lift() {
    state.withLock { $0.fault = nil }
  }

  /// Writes a note to the log.
  package func mark(_ note: String) {
    _ = admit(.mark(note))
  }
}
