import FaultVFS
import FileRecording
import MessagingQueue
import SystemPackage
import Testing
import VaultedDatabase

/// Salvages of an intact home on a failing disk.
@Suite struct QueueSalvageFaultTests {
  private let place = EngineHome()

  /// Salvages the home over a recorder.
  private func salvage(_ recorder: FileRecorder) async throws -> (QueueSalvage?, EngineError?) {
    let home = DataVaultHome(
      place.home.path, fileSystem: RecordingFileSystem(recorder: recorder),
      vaultParameters: place.home.vaultParameters, baseVFS: RecordingVFS(recorder).name)
    let vault = try await place.unlockedVault()
    do throws(EngineError) {
      let report = try await MessagingEngine.salvage(home, vault: vault)
      return (report, nil)
    } catch {
      return (nil, error)
    }
  }

  @Test func `a failing step of the disk is taken neither for damage nor for an older copy`()
    async throws
  {
    try await place.publish(1...5, place.makeVault())
    let whole = try place.image
    let quiet = FileRecorder()
    #expect(try await salvage(quiet).0?.isComplete == true)
    #expect(quiet.failableEventCount > 50)
    let steps = stride(from: 0, to: quiet.failableEventCount, by: 5).map { number in
      FileRecorder.Fault.failure(
        atEvent: number, number.isMultiple(of: 2) ? Errno.ioError : .noSpace)
    }
    let reads = stride(from: 0, to: quiet.readCount, by: 5).map { number in
      FileRecorder.Fault.readFailure(atRead: number, .ioError)
    }
    for fault in steps + reads {
      try place.restore(whole)
      let (salvage, error) = try await salvage(FileRecorder(fault: fault))
      #expect(error?.code != .rolledBack, "\(fault)")
      if salvage?.isComplete == true, case .unreadable(let error)? = salvage?.anchor {
        Issue.record("\(fault): the anchor of a complete copy is unreadable: \(error)")
      }
      // A page of the damaged database that the device does not return is lost.
      guard case .failure = fault else { continue }
      if let salvage { #expect(salvage.isComplete, "\(fault): \(salvage)") }
      #expect(error?.code != .damaged, "\(fault)")
      #expect(try await place.messageCount(place.unlockedVault()) == 5)
    }
  }
}
