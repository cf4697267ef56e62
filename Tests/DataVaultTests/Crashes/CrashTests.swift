import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Glibc
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct CrashTests {
  /// Hits each call of each change with a kill, a power cut, a full disk and a device error.
  @Test func `no interruption of any write path loses existing or acknowledged data`()
    async throws
  {
    let scenarios = CrashScenario.all
    var points: [FileEvent] = []
    var lost = 0
    try await withThrowingTaskGroup(of: (points: [FileEvent], lost: Int).self) { group in
      for scenario in scenarios {
        group.addTask {
          var enumeration = FaultEnumeration(scenario)
          try await enumeration.run()
          return (enumeration.points, enumeration.lost)
        }
      }
      for try await result in group {
        points += result.points
        lost += result.lost
      }
    }
    print(
      "vault faults: \(points.count) interruption points, \(scenarios.count) operations, "
        + "lost: \(lost)")
    #expect(lost == 0)
    // Only root changes owners.
    #expect(points.count >= (geteuid() == 0 ? 339 : 247))
    #expect(scenarios.count >= (geteuid() == 0 ? 35 : 32))
    var names: Set = [
      "create", "write", "fsync", "rename", "fsync of a directory", "remove", "mkdir", "lock",
    ]
    if geteuid() == 0 { names.insert("chown") }
    #expect(names == Set(points.map(\.name)))
  }

  @Test func `a failed change leaves the unlocked vault unchanged and usable`() async throws {
    let home = TemporaryHome()
    let recorder = FileRecorder(fault: .failure(atEvent: 14, .noSpace))
    let vault = try await FastTestVault.create(
      .messaging, in: home.recording(recorder), credentials: credentials("p"))
    var failures = 0
    for number in 0..<10 {
      if await code({ try await vault.setText("x", for: "\(number)") }) != nil {
        failures += 1
        #expect(try await vault.itemNames().count == number)
        try await vault.setText("x", for: "\(number)")
      }
    }
    #expect(failures == 1)
    #expect(try await vault.itemNames().count == 10)
  }

  @Test func `a write synchronizes the contents before the rename and the directory after it`()
    async throws
  {
    let home = TemporaryHome()
    let vault = try await home.store.createVault(with: credentials("p"))
    await vault.lock()
    let recorder = FileRecorder()
    let recorded = try await FastTestVault.get(.messaging, in: home.recording(recorder))
    try await recorded.unlock(with: credentials("p"))
    #expect(recorder.events.filter { !$0.isOfAttempts } == [])
    try await recorded.setText("x", for: "a")
    let steps = recorder.events.filter { !$0.isOfAttempts }.map(\.name)
      .filter { !["mkdir", "chown"].contains($0) }
    #expect(
      steps == [
        "lock", "remove", "create", "write", "fsync", "rename", "fsync of a directory", "unlock",
      ])
  }
}

extension TemporaryHome {
  /// A store on this home whose steps are logged and can fail.
  func recording(_ recorder: FileRecorder) -> FileVaultStore {
    FileVaultStore(home: path, fileSystem: RecordingFileSystem(recorder: recorder))
  }
}
