import FaultVFS
import FileRecording
import Foundation
import SealedSQLite
import SealedVFS
import SystemPackage
import Testing

/// A copy is whole or absent, at any step at which it ends.
@Suite struct CopyPowerCutTests {
  private let place = SamplePlace()

  private func copy(to: SamplePlace.Format, _ recorder: FileRecorder) throws {
    try SealedDatabase.copy(
      from: place.file("plain.db", .plain), to: place.file("copy.db", to),
      over: RecordingVFS(recorder).name, fileSystem: RecordingFileSystem(recorder: recorder))
  }

  @Test(arguments: SamplePlace.Format.allCases)
  func `a kill or power cut at any step leaves the whole copy or none`(
    format: SamplePlace.Format
  ) throws {
    try place.makePlain("plain.db", rowCount: 20)
    let source = try place.bytes("plain.db")
    let recorder = FileRecorder()
    try copy(to: format, recorder)
    #expect(recorder.events.count > 50)
    try place.expectWholeCopyOrNone(recorder.events, sources: [place.path("plain.db"): source])
  }

  @Test(arguments: SamplePlace.Format.allCases)
  func `a full disk at any step is reported, and leaves no file`(
    format: SamplePlace.Format
  ) throws {
    try place.makePlain("plain.db", rowCount: 20)
    let recorder = FileRecorder()
    try copy(to: format, recorder)
    try FileManager.default.removeItem(atPath: place.path("copy.db").string)
    let count = recorder.failableEventCount
    for step in Set([0, 1, 2, 3, 4, 5, count / 2, count - 4, count - 3]).sorted() {
      let failing = FileRecorder(fault: .failure(atEvent: step, .noSpace))
      let failure = #expect(throws: SealedDatabaseError.self, "step \(step)") {
        try copy(to: format, failing)
      }
      // Only a write can report a full disk.
      #expect([.diskFull, .inputOutput].contains(failure?.code), "step \(step) of \(count)")
      #expect(place.names == ["plain.db"], "step \(step) of \(count)")
    }
  }
}

extension SamplePlace {
  /// Expects `copy.db` whole or absent, and unchanged sources, after a cut at any of the steps.
  func expectWholeCopyOrNone(_ events: [FileEvent], sources: [FilePath: [UInt8]] = [:]) throws {
    let whole = try bytes("copy.db")
    var presences: [Bool] = []
    var replay = DiskReplay([], initialFiles: sources)
    for count in 0...events.count {
      if count > 0 { replay.apply(events[count - 1]) }
      for loss in [DiskReplay.Loss.nothing, .everythingUnsynchronized, .unsynchronizedContents] {
        let files = replay.files(after: loss)
        let isWhole = files[path("copy.db")].map { $0 == whole } ?? true
        #expect(isWhole, "after \(count) of \(events.count), \(loss)")
        for (path, bytes) in sources where files[path] != bytes {
          Issue.record("the source changed")
        }
      }
      presences.append(replay.files(after: .everythingUnsynchronized)[path("copy.db")] != nil)
    }
    #expect(presences.first == false && presences.last == true)
  }
}
