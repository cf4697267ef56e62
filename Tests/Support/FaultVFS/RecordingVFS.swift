package import FileLayer
import CSQLite
import Synchronization
package import SystemPackage

/// An SQLite VFS over "unix" that logs each step with a recorder, and fails where the recorder says
/// so, in one order with the steps of a recording file system.
///
/// Register it with ``init(_:)``, name it as the VFS beneath a sealed database, and replay the
/// recorder's events with `DiskReplay`. It stays registered until the process ends: SQLite keeps
/// pointers to it.
package final class RecordingVFS: Sendable {
  /// The name that SQLite finds it by; no two are equal.
  package let name: String

  /// What the record calls a file that SQLite opened without a name.
  package static let unnamed = FilePath("unnamed")

  package let recorder: FileRecorder

  private static let count = Atomic<Int>(0)

  package init(_ recorder: FileRecorder) {
    name = "recording-\(Self.count.add(1, ordering: .relaxed).newValue)"
    self.recorder = recorder
    RecordingCallbacks.register(self)
  }
}
