package import FileLayer
internal import Synchronization
internal import TestSupport

/// Clocks that change only when a test moves them.
package final class ManualTimeSource: TimeSource {
  private struct State {
    var now: UnixTime
    var sinceBoot: Duration
    var bootID: String
  }

  private let state: Mutex<State>

  package init(
    now: UnixTime = UnixTime(nanoseconds: 1_700_000_000_000_000_000),
    sinceBoot: Duration = .seconds(1000), bootID: String = "boot-1"
  ) {
    state = Mutex(State(now: now, sinceBoot: sinceBoot, bootID: bootID))
  }

  package var now: UnixTime { state.withLock { $0.now } }
  package var sinceBoot: Duration { state.withLock { $0.sinceBoot } }
  package var bootID: String { state.withLock { $0.bootID } }

  /// Moves both clocks forward.
  package func advance(by duration: Duration) {
    TestLog.note("clock: \(duration) later")
    state.withLock { state in
      state.now.nanoseconds += duration.wholeNanoseconds
      state.sinceBoot += duration
    }
  }

  /// Sets the wall clock alone, forwards or backwards.
  package func setNow(_ now: UnixTime) {
    TestLog.note("clock: set to \(now.nanoseconds) ns")
    state.withLock { $0.now = now }
  }

  /// Simulates a reboot: another boot id, a boot clock at zero, an unchanged wall clock.
  package func reboot(as bootID: String) {
    state.withLock { state in
      state.bootID = bootID
      state.sinceBoot = .zero
    }
  }
}
