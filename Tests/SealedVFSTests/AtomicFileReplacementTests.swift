import FileLayer
import FileRecording
import Foundation
import SealedVFS
import SystemPackage
import TestSupport
import Testing

@Suite struct AtomicFileReplacementTests {
  @Test func `putInPlace() does not replace a file that was created in the meantime`() throws {
    let folder = ScratchFolder()
    let file = try AtomicFileReplacement(newAt: folder("new.db"), LinuxFileSystem())
    let lock = try file.claim()
    defer { lock.release() }
    try file.requireFreePlace()
    try folder.put("another's", at: "new.db")
    let refused = #expect(throws: SealedDatabaseError.self) { try file.putInPlace() }
    #expect(refused?.code == .alreadyExists)
    #expect(folder.contents(of: "new.db") == "another's")
    #expect(try folder.names() == ["new.db"])
  }

  @Test func `putInPlace() says that the file is there if only its name is not durable`() throws {
    func make(_ recorder: FileRecorder) throws {
      let directory = ScratchFolder()
      let file = try AtomicFileReplacement(
        newAt: directory("new.db"), RecordingFileSystem(recorder: recorder))
      let lock = try file.claim()
      defer { lock.release() }
      defer { #expect(FileManager.default.fileExists(atPath: file.place.string)) }
      try file.putInPlace()
    }
    let whole = FileRecorder()
    try make(whole)
    let error = #expect(throws: SealedDatabaseError.self) {
      try make(FileRecorder(fault: .failure(atEvent: whole.failableEventCount - 1, .ioError)))
    }
    #expect(error?.code == .inputOutput)
    #expect(error?.detail?.contains("the file is complete, but the disk did not confirm") == true)
  }

  @Test func `a key that the system fails to read is an error of reading, not of the key`() throws {
    // Reading the process's memory at address 0 fails with EIO.
    let memory = open("/proc/self/mem", O_RDONLY)
    defer { close(memory) }
    do throws(SealedDatabaseError) {
      _ = try KeySource.descriptor(memory).read()
      Issue.record("it was read")
    } catch {
      #expect(error.code == .inputOutput)
    }
  }
}
