import FaultVFS
import FileLayer
import FileRecording
import Foundation
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
  private let folder: ScratchFolder
  var directory: FilePath { folder.path }
  var database: FilePath { directory.appending("work.db") }
  var second: FilePath { directory.appending("second.db") }
  private(set) var contents: [Int] = []

  init(_ form: FileForm) throws {
    self.form = form
    vfs = RecordingVFS(recorder).name
    folder = ScratchFolder()
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

  /// The current files, while no connection has them open.
  func image() throws -> [FilePath: [UInt8]] {
    var image: [FilePath: [UInt8]] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: directory.string) {
      let path = directory.appending(name)
      image[path] = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path.string)))
    }
    return image
  }

  func finish(_ initial: [FilePath: [UInt8]], attached: FilePath? = nil) -> RecordedWork {
    RecordedWork(
      events: recorder.events, initial: initial, contents: contents, database: database,
      attached: attached)
  }
}
