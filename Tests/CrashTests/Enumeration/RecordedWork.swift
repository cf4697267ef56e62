import FaultVFS
import FileLayer
import FileRecording
import SealedVFS
import SystemPackage
import TestSupport

/// The steps of a workload on the disk, and the database's contents after each acknowledged step.
struct RecordedWork {
  /// The steps, with a mark after each acknowledged one: its number in `contents`.
  let events: [FileEvent]
  let initial: [FilePath: [UInt8]]
  /// Digests: before the work, and after each acknowledged step.
  let contents: [Int]
  let database: FilePath
  var attached: FilePath?
  /// The keys that can open a state, by the first bytes of the file.
  var keys: [[UInt8]] = [FileForm.keyBytes]
}

/// A workload under recording, in a directory of its own.
final class WorkRecording {
  let form: FileForm
  let recorder = FileRecorder()
  let vfs: String
  private let folder = ScratchFolder()
  var database: FilePath { folder("work.db") }
  var second: FilePath { folder("second.db") }
  private(set) var contents: [Int] = []
  private var initial: [FilePath: [UInt8]] = [:]
  private var skippedEventCount = 0

  init(_ form: FileForm) throws {
    self.form = form
    vfs = RecordingVFS(recorder).name
  }

  /// Notes that a step has returned, and the database's contents at that moment.
  func acknowledge(_ connection: SQLConnection) throws {
    contents.append(try connection.digest())
    if contents.count > 1 { recorder.mark("\(contents.count - 1)") }
  }

  /// Runs each statement as a step of its own.
  func run(_ connection: SQLConnection, _ steps: [String]) throws {
    if contents.isEmpty { try acknowledge(connection) }
    for step in steps {
      try connection.run(step)
      try acknowledge(connection)
    }
  }

  /// Begins the work: the files are its start, and what was recorded before is dropped.
  ///
  /// No connection must have the files open.
  func begin(hasFiles: Bool = true) throws {
    skippedEventCount = recorder.events.count
    guard hasFiles else { return }
    for name in try folder.names() { initial[folder(name)] = try folder.bytes(name) }
  }

  func finish(attached: FilePath? = nil) -> RecordedWork {
    RecordedWork(
      events: Array(recorder.events.dropFirst(skippedEventCount)), initial: initial,
      contents: contents, database: database, attached: attached)
  }
}
