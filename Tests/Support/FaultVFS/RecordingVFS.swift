internal import FileLayer
package import FileRecording
import Synchronization
package import SystemPackage

/// An SQLite VFS over "unix" that records each step, and fails where its recorder decides.
///
/// Its steps are in one order with those of a recording file system. Register it with ``init(_:)``,
/// use it as the underlying VFS of a sealed database, and replay the recorder's events with
/// `DiskReplay`. It stays registered until the process ends, because SQLite keeps pointers to it.
package final class RecordingVFS: Sendable {
  /// The name by which SQLite finds the VFS; each one has a different name.
  package let name: String

  /// The path in the record for a file that SQLite opened without a name.
  package static let unnamed = FilePath("unnamed")

  package let recorder: FileRecorder

  private static let count = Atomic<Int>(0)

  package init(_ recorder: FileRecorder) {
    name = "recording-\(Self.count.add(1, ordering: .relaxed).newValue)"
    self.recorder = recorder
    RecordingCallbacks.register(self)
  }
}
