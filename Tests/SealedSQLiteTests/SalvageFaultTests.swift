import FaultVFS
import FileRecording
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@testable import SealedSalvage

/// Salvages of an intact database on a failing disk.
@Suite struct SalvageFaultTests {
  @Test func `a failing step of the disk is not taken for damage of the source`() throws {
    let fixture = try SalvageFixture.Variant.plain.fixture()
    let directory = ScratchFolder()
    let source = FilePath(try directory.file("a.db", fixture.bytes))
    let destination = directory("b.db")
    func salvage(_ recorder: FileRecorder) throws -> SalvageReport {
      try SealedVFS.salvage(
        from: source, key: testKey(), to: destination, newKey: testKey(),
        over: RecordingVFS(recorder).name, fileSystem: RecordingFileSystem(recorder: recorder))
    }
    let quiet = FileRecorder()
    #expect(try salvage(quiet).isComplete)
    let whole = try directory.bytes("b.db").count
    try FileManager.default.removeItem(atPath: destination.string)
    let count = quiet.failableEventCount
    #expect(count > 50)
    let steps = (0..<count).flatMap { number in
      [Errno.ioError, .noSpace].map { FileRecorder.Fault.failure(atEvent: number, $0) }
    }
    let reads = stride(from: 0, to: quiet.readCount, by: 5)
      .map { FileRecorder.Fault.readFailure(atRead: $0, .ioError) }
    for fault in steps + reads {
      do {
        let report = try salvage(FileRecorder(fault: fault))
        // A page of the source that the device does not return is lost.
        #expect(report.notRecreated.allSatisfy { $0.name == "sqlite_sequence" }, "\(fault)")
        if case .failure = fault { #expect(report.isComplete, "\(fault)") }
      } catch let error as SealedDatabaseError {
        #expect([.diskFull, .inputOutput].contains(error.code), "\(fault): \(error)")
        // After the rename only the synchronization of the directory can fail.
        guard FileManager.default.fileExists(atPath: destination.string) else { continue }
      }
      let made = try directory.bytes("b.db").count
      if case .failure = fault { #expect(made == whole, "\(fault)") }
      try FileManager.default.removeItem(atPath: destination.string)
    }
  }
}
