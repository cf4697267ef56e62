import FaultVFS
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import QueueFixture
import SealedSQLite
import SystemPackage
import TestSupport
import VaultCrypto

/// An engine's database on a sealed file whose every step is recorded, and fails on request.
struct RecordedEngine {
  static let channel = Channel.orders

  /// In memory if the system has `/dev/shm`: the record decides what is durable.
  static let base = FilePath(
    FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory())

  let scratch = ScratchFolder(in: Self.base.string)
  var folder: FilePath { scratch.path }
  let recorder: FileRecorder
  let time = ManualTimeSource()

  init(fault: FileRecorder.Fault? = nil) {
    recorder = FileRecorder(fault: fault)
  }

  /// Opens the file for the time of `body`, over the recording VFS or plainly.
  func withDatabase(
    isRecorded: Bool, _ body: (TestQueue) throws -> Void
  ) throws {
    let pool = try openPool(isRecorded: isRecorded)
    defer { try? pool.close() }
    try body(TestQueue(pool: pool, time: time))
  }

  func openPool(isRecorded: Bool) throws -> DatabasePool {
    let key = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
    return try SealedDatabase.openPool(
      at: folder.appending("messaging.db"), key: key,
      over: isRecorded ? RecordingVFS(recorder).name : "unix")
  }

  /// Runs every operation, with a note after each of what it has acknowledged.
  func work(_ database: TestQueue) throws {
    try database.publish(["a", "b"], to: Self.channel)
    recorder.mark("published a b")
    try database.publish(["c"], to: Self.channel)
    recorder.mark("published c")
    let deliveries = try database.receive(3, from: Self.channel)
    recorder.mark("received")
    recorder.mark("acknowledging a")
    try database.acknowledge([deliveries[0].token])
    recorder.mark("acknowledged a")
    try database.release([deliveries[1].token])
    recorder.mark("released")
    try database.publish(Self.many, to: Self.channel)
    recorder.mark("published " + Self.many.joined(separator: " "))
  }

  /// The notes among events.
  static func marks(_ events: some Sequence<FileEvent>) -> [String] {
    events.compactMap { if case .mark(let note) = $0 { note } else { nil } }
  }

  /// Another engine on the files that a kill or a power cut leaves after these events.
  func copy(after events: ArraySlice<FileEvent>, _ loss: DiskReplay.Loss) -> RecordedEngine {
    let copy = RecordedEngine()
    for (path, bytes) in DiskReplay(events).files(after: loss) {
      let target = copy.folder.string + path.string.dropFirst(folder.string.count)
      _ = FileManager.default.createFile(atPath: target, contents: Data(bytes))
    }
    return copy
  }

  /// A batch that fills many pages.
  static let many = (100..<120).map { "\($0)-" + String(repeating: "x", count: 1000) }

  /// The texts that a receiver finds after a reboot.
  func texts() throws -> [String] {
    var texts: [String] = []
    time.reboot(as: "boot-2")
    try withDatabase(isRecorded: false) { database in
      texts = try database.receive(1000, from: Self.channel)
        .sorted { $0.timetoken < $1.timetoken }.map(\.text)
    }
    return texts
  }
}

extension Channel {
  /// The tests' channel.
  static let orders: Channel = {
    guard let channel = try? Channel("orders") else { preconditionFailure("a valid name") }
    return channel
  }()
}
