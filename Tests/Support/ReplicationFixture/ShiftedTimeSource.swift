package import FileLayer
internal import Synchronization

/// The machine's clocks, of which a test can move the boot clock forward.
package final class ShiftedTimeSource: TimeSource {
  private let system: SystemTimeSource
  private let shift = Mutex(Duration.zero)

  package init() throws(FileError) { system = try SystemTimeSource() }

  package var now: UnixTime { system.now }
  package var sinceBoot: Duration { system.sinceBoot + shift.withLock { $0 } }
  package var bootID: String { system.bootID }

  /// Moves the boot clock forward, and not the wall clock.
  package func advance(by duration: Duration) { shift.withLock { $0 += duration } }
}
