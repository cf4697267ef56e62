import FileLayer
import FileRecording
import Glibc
import SystemPackage
import TestSupport
import Testing

/// Tests that after a crash at any step the file has either its complete old or its complete new
/// contents.
@Suite struct FileSystemReplaceTests {
  let directory = ScratchFolder()

  private var path: FilePath { directory("vault") }
  private var temporary: FilePath { directory(".vault.new") }
  private let owner = FileOwner(userID: geteuid(), groupID: getegid())

  private func replace(on files: any FileSystem, with contents: String = "new") throws(FileError) {
    try files.replace(path, with: Array(contents.utf8), permissions: .ownerReadWrite, owner: owner)
  }

  @Test func `replace() takes its steps in this order`() throws {
    let events = try recordedEvents()
    #expect(
      events == [
        .remove(temporary),
        .create(temporary),
        .write(temporary, offset: 0, bytes: Array("new".utf8)),
        .changeOwner(temporary, owner),
        .synchronize(temporary),
        .rename(temporary, to: path),
        .synchronizeDirectory(directory.path),
      ])
    #expect(try directory.names() == ["vault"])
    #expect(directory.contents(of: "vault") == "new")
  }

  @Test func `replace() replaces a file of any length`() throws {
    let files = LinuxFileSystem()
    for contents in ["", "short", String(repeating: "long ", count: 100_000), "", "end"] {
      try replace(on: files, with: contents)
      #expect(directory.contents(of: "vault") == contents)
    }
  }

  // MARK: A process that is killed

  @Test func `a kill at any step leaves the old or new file, and the next replace() works`() throws
  {
    for step in 0..<7 {
      try directory.put("old", at: "vault")
      let recorder = FileRecorder(fault: .crash(atEvent: step))
      let files = RecordingFileSystem(recorder: recorder)
      #expect(throws: FileError.self, "step \(step)") { try replace(on: files) }
      #expect(recorder.hasCrashed)
      #expect(directory.contents(of: "vault") == (step < 6 ? "old" : "new"), "step \(step)")
      #expect(throws: FileError.self) { try files.status(of: path) }

      try replace(on: LinuxFileSystem(), with: "newer")
      #expect(directory.contents(of: "vault") == "newer", "step \(step)")
      #expect(try directory.names() == ["vault"], "step \(step)")
    }
  }

  // MARK: A step that fails

  @Test(arguments: [
    Errno.ioError, .noSpace, .diskQuotaExceeded, .permissionDenied, .readOnlyFileSystem,
    .tooManyOpenFiles,
  ])
  func `a failure at any step is reported and leaves the old or new file`(_ errno: Errno) throws {
    for step in 0..<7 {
      try directory.put("old", at: "vault")
      let recorder = FileRecorder(fault: .failure(atEvent: step, errno))
      let error = #expect(throws: FileError.self, "step \(step)") {
        try replace(on: RecordingFileSystem(recorder: recorder))
      }
      #expect(error?.errno == errno)
      #expect(error?.isCrash == false)
      #expect(directory.contents(of: "vault") == (step < 6 ? "old" : "new"), "step \(step)")
      #expect(try directory.names() == ["vault"], "step \(step)")
    }
  }

  @Test func `a real failure of the system leaves the old file`() throws {
    try directory.put("old", at: "vault")
    // A directory is in the place of the temporary file, which can be neither removed nor created.
    try LinuxFileSystem().createDirectory(temporary, permissions: .ownerReadWriteExecute)
    #expect(throws: FileError.self) { try replace(on: LinuxFileSystem()) }
    #expect(directory.contents(of: "vault") == "old")
  }

  // MARK: A power cut

  @Test func `a power cut at any step leaves the old or new file`() throws {
    let events = try recordedEvents()
    #expect(violation(of: events, from: "old") == nil)
    #expect(violation(of: events, from: nil) == nil)
  }

  /// A control that shows the effect of the fsync on the contents: without it, this check fails.
  @Test func `the check fails without the fsync of the contents`() throws {
    let events = try recordedEvents().filter { $0 != .synchronize(temporary) }
    #expect(violation(of: events, from: "old") != nil)
    #expect(violation(of: events, from: nil) != nil)
  }

  /// The fsync must come before the rename, because a file system can commit the name first.
  @Test func `the check fails if the fsync of the contents follows the rename`() throws {
    var events = try recordedEvents()
    let synchronize = try #require(events.firstIndex(of: .synchronize(temporary)))
    events.remove(at: synchronize)
    events.insert(.synchronize(path), at: synchronize + 1)
    #expect(violation(of: events, from: "old") != nil)
  }

  @Test func `the check fails without the fsync of the directory`() throws {
    let events = try recordedEvents().filter { $0 != .synchronizeDirectory(directory.path) }
    #expect(violation(of: events, from: "old") != nil)
    #expect(violation(of: events, from: nil) != nil)
  }

  /// Writing in place, which replace() avoids.
  @Test func `the check fails for writing in place`() {
    let events: [FileEvent] = [
      .truncate(path, byteCount: 0),
      .write(path, offset: 0, bytes: Array("new".utf8)),
      .synchronize(path),
      .synchronizeDirectory(directory.path),
    ]
    #expect(violation(of: events, from: "old") != nil)
  }

  private func recordedEvents() throws -> [FileEvent] {
    try directory.put("old", at: "vault")
    let recorder = FileRecorder()
    try replace(on: RecordingFileSystem(recorder: recorder))
    return recorder.events
  }

  /// The first step and loss that leave neither `old` nor the new contents, or that lose contents
  /// that were durable on return; nil if there is none.
  private func violation(of events: [FileEvent], from old: String?) -> String? {
    let initial = old.map { [path: Array($0.utf8)] } ?? [:]
    let losses: [DiskReplay.Loss] = [.nothing, .everythingUnsynchronized, .unsynchronizedContents]
    for count in 0...events.count {
      for loss in losses {
        let files = DiskReplay(events.prefix(count), initialFiles: initial).files(after: loss)
        let found = files[path].map { String(decoding: $0, as: UTF8.self) }
        let isDone = count == events.count
        if found != "new" && (isDone || found != old) {
          return "after \(count) steps, losing \(loss): \(found ?? "nothing")"
        }
      }
    }
    return nil
  }
}
