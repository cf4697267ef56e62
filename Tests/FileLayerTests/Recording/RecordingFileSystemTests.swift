import FileLayer
import FileRecording
import SystemPackage
import TestSupport
import Testing

@Suite struct RecordingFileSystemTests {
  let directory = ScratchFolder()

  /// Runs each kind of step once.
  private func work(on files: any FileSystem) throws(FileError) {
    try files.createDirectory(directory("folder"), permissions: .ownerReadWriteExecute)
    let lock = try files.lock(directory("lock"), wait: true)
    let file = try files.create(directory("folder/a"), permissions: .ownerReadWrite)
    defer { file.close() }
    try file.write([1, 2])
    try file.write([3])
    try file.synchronize()
    try files.rename(directory("folder/a"), to: directory("folder/b"))
    try files.synchronizeDirectory(directory("folder"))
    try files.remove(directory("folder/b"))
    lock?.release()
  }

  @Test func `the log has each step in order, with its bytes and offset`() throws {
    let recorder = FileRecorder()
    try work(on: RecordingFileSystem(recorder: recorder))
    recorder.mark("done")
    #expect(
      recorder.events == [
        .createDirectory(directory("folder")),
        .lock(directory("lock")),
        .create(directory("folder/a")),
        .write(directory("folder/a"), offset: 0, bytes: [1, 2]),
        .write(directory("folder/a"), offset: 2, bytes: [3]),
        .synchronize(directory("folder/a")),
        .rename(directory("folder/a"), to: directory("folder/b")),
        .synchronizeDirectory(directory("folder")),
        .remove(directory("folder/b")),
        .unlock(directory("lock")),
        .mark("done"),
      ])
    #expect(recorder.failableEventCount == 9)
    #expect(!recorder.hasCrashed)
  }

  @Test func `reads are not logged`() throws {
    let recorder = FileRecorder()
    let files = RecordingFileSystem(recorder: recorder)
    _ = try files.status(of: directory.path)
    _ = try files.read(directory("none"), maximumByteCount: 10)
    _ = try files.entries(of: directory.path)
    #expect(recorder.events.isEmpty)
  }

  @Test(arguments: 0..<9) func `after a crash no step takes effect`(_ step: Int) throws {
    let recorder = FileRecorder(fault: .crash(atEvent: step))
    let files = RecordingFileSystem(recorder: recorder)
    let error = #expect(throws: FileError.self) { try work(on: files) }
    #expect(error?.isCrash == true)
    #expect(recorder.events.count == step)
    let names = try directory.names()
    for attempt in [
      { try work(on: files) },
      { _ = try files.status(of: directory.path) },
      { _ = try files.read(directory("folder/a"), maximumByteCount: 10) },
      { _ = try files.entries(of: directory.path) },
    ] as [() throws -> Void] {
      let error = #expect(throws: FileError.self) { try attempt() }
      #expect(error?.isCrash == true)
    }
    recorder.mark("too late")
    #expect(recorder.events.count == step)
    #expect(try directory.names() == names)
  }

  @Test(arguments: 0..<9) func `a failure occurs once and is not logged`(_ step: Int) throws {
    let recorder = FileRecorder(fault: .failure(atEvent: step, .noSpace))
    let files = RecordingFileSystem(recorder: recorder)
    let error = #expect(throws: FileError.self) { try work(on: files) }
    #expect(error?.errno == .noSpace)
    #expect(error?.isCrash == false)
    #expect(recorder.events.filter(\.canFail).count == step)
    _ = try files.entries(of: directory.path)
    try files.remove(directory("anything"))
  }

  @Test func `a lock that another handle holds is not taken`() throws {
    let files = RecordingFileSystem(recorder: FileRecorder())
    let held = try LinuxFileSystem().lock(directory("lock"), wait: false)
    #expect(try files.lock(directory("lock"), wait: false) == nil)
    withExtendedLifetime(held) {}
  }

  /// The death of a process releases its locks, although the log has no entry for it.
  @Test func `a crash releases the locks`() throws {
    let recorder = FileRecorder(fault: .crash(atEvent: 1))
    let files = RecordingFileSystem(recorder: recorder)
    let lock = try files.lock(directory("lock"), wait: false)
    #expect(throws: FileError.self) { try files.remove(directory("x")) }
    lock?.release()
    #expect(try LinuxFileSystem().lock(directory("lock"), wait: false) != nil)
  }
}
