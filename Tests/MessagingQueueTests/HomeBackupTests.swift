import DataVault
import DataVaultTesting
import FaultVFS
import FileLayer
import FileRecording
import Foundation
import GRDB
import MessagingQueue
import Synchronization
import SystemPackage
import TestSupport
import Testing
import VaultCrypto
import VaultedDatabase

@Suite struct HomeBackupTests {
  private let place = EngineHome()
  private let scratch = ScratchFolder()
  private var target: FilePath { scratch.path.appending("backup") }
  private var backup: HomeBackup { HomeBackup(target) }

  private func unlocked(_ store: any VaultStore) async throws -> Vault {
    let vault = try await Vault.get(
      .messaging, in: store, parameters: place.home.vaultParameters)
    try await vault.unlock(with: EngineHome.credentials)
    return vault
  }

  /// Restores the backup under a name, and reads the channel of the new home to its end.
  private func restored(_ name: String) async throws -> [String] {
    let path = scratch.path.appending(name)
    let contents = try await backup.restore(to: path, vault: try await unlocked(backup.store))
    #expect(contents.isClean)
    return try await messages(in: path)
  }

  private func messages(in path: FilePath) async throws -> [String] {
    let home = DataVaultHome(path, vaultParameters: place.home.vaultParameters)
    let engine = try await MessagingEngine.start(home, vault: try await unlocked(home.store))
    let deliveries = try await engine.receive(from: .orders, maximumCount: 1000)
    try await engine.stop()
    return deliveries.compactMap(\.string)
  }

  @Test func `a backup is restored with its vaults, messages, tables and their state`()
    async throws
  {
    let vault = try await place.makeVault()
    try await vault.set(SecretBytes(copying: [7]), kind: .binary, for: "token")
    _ = try await Vault.create(
      try VaultID("other"), in: place.home.store, credentials: EngineHome.credentials)
    try await place.withEngine(vault) { engine in
      try await engine.publish(["a", "b", "c"].map { Message(channel: .orders, $0) })
      let taken = try await engine.receive(from: .orders, maximumCount: 1)
      try await engine.acknowledge(taken[0].token)
      try await engine.write { db in try db.execute(sql: "CREATE TABLE mine AS SELECT 1 AS x") }
    }
    let before = try place.image
    let made = try await HomeBackup.make(of: place.home, vault: vault, at: target)
    #expect(made.isClean && made.vaultCount == 2 && made.messages?.messages?.messageCount == 2)
    #expect(try place.databaseFiles() == before.files)
    #expect(try place.vaultFile == before.vaultFile)

    let found = try await backup.verify(vault: try await unlocked(backup.store))
    #expect(found.isClean && found.state == made.state && found.vaultCount == 2)
    #expect(try await restored("home") == ["b", "c"])
    #expect(try await restored("again") == ["b", "c"])
    let home = DataVaultHome(
      scratch.path.appending("home"), vaultParameters: place.home.vaultParameters)
    let restoredVault = try await unlocked(home.store)
    #expect(try await restoredVault.itemNames().map(\.name) == ["token"])
    let engine = try await MessagingEngine.start(home, vault: restoredVault)
    #expect(try await engine.read { try Int.fetchOne($0, sql: "SELECT x FROM mine") } == 1)
    try await engine.stop()
  }

  @Test func `a backup has what was committed before it, while publishers and an engine work`()
    async throws
  {
    let vault = try await place.makeVault()
    let engine = try await place.start(vault)
    let acknowledged = Mutex<[String]>([])
    let publishing = Task {
      var number = 0
      while !Task.isCancelled {
        try await engine.publish(Message(channel: .orders, "\(number)"))
        acknowledged.withLock { $0.append("\(number)") }
        number += 1
      }
    }
    for round in 0..<5 {
      let last = acknowledged.withLock { $0.count }
      try await eventually("another publication") { acknowledged.withLock { $0.count } > last }
      let path = scratch.path.appending("backup-\(round)")
      let before = acknowledged.withLock { $0 }
      let made = try await HomeBackup.make(of: place.home, vault: vault, at: path)
      let count = try #require(made.messages?.messages?.messageCount)
      #expect(count >= before.count)
      let home = scratch.path.appending("home-\(round)")
      let opened = try await unlocked(HomeBackup(path).store)
      try await HomeBackup(path).restore(to: home, vault: opened)
      let found = try await messages(in: home)
      #expect(found == (0..<min(count, 1000)).map(String.init))
    }
    publishing.cancel()
    _ = try? await publishing.value
    try await engine.stop()
  }

  @Test func `a change of key is busy while a backup copies, and works after it`() async throws {
    let vault = try await place.makeVault()
    try await place.publish(1...60, vault)
    final class Refusals: Sendable { let codes = Mutex<[VaultedDatabaseError.Code]>([]) }
    let refusals = Refusals()
    let home = place.home
    try await HomeBackup.make(
      of: home, vault: vault, at: target,
      progress: { progress in
        guard refusals.codes.withLock({ $0.isEmpty }) else { return }
        let done = DispatchSemaphore(value: 0)
        Task {
          do throws(VaultedDatabaseError) {
            try await VaultedDatabase.changeKey(of: home, vault: vault)
          } catch {
            refusals.codes.withLock { $0.append(error.code) }
          }
          done.signal()
        }
        done.wait()
      })
    #expect(refusals.codes.withLock { $0 } == [.busy])
    try await VaultedDatabase.changeKey(of: home, vault: vault)
    #expect(try await backup.verify(vault: try await unlocked(backup.store)).isClean)
  }

  @Test func `every changed byte of a backup is found`() async throws {
    let vault = try await place.makeVault()
    try await place.publish(1...20, vault)
    try await HomeBackup.make(of: place.home, vault: vault, at: target)
    let path = target.appending("messaging.db").string
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let opened = try await unlocked(backup.store)
    for offset in stride(from: 3, to: whole.count, by: 1499) {
      var bytes = whole
      bytes[offset] ^= 1
      try bytes.write(to: URL(fileURLWithPath: path))
      let isClean = try? await backup.verify(vault: opened).isClean
      #expect(isClean != true, "byte \(offset)")
      await #expect(throws: EngineError.self, "byte \(offset)") {
        try await backup.restore(to: scratch.path.appending("home"), vault: opened)
      }
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: scratch.path.string) == ["backup"])
    }
    try whole.prefix(whole.count - 4096).write(to: URL(fileURLWithPath: path))
    #expect((try? await backup.verify(vault: opened).isClean) != true)
  }

  @Test func `a backup never replaces anything, and one that was used as a home is refused`()
    async throws
  {
    let vault = try await place.makeVault()
    try await place.publish(1...2, vault)
    try scratch.file("backup", [1])
    await expectRefusal(.alreadyExists) {
      try await HomeBackup.make(of: place.home, vault: vault, at: target)
    }
    try FileManager.default.removeItem(atPath: target.string)
    try FileManager.default.createDirectory(
      atPath: target.string, withIntermediateDirectories: false)
    try await HomeBackup.make(of: place.home, vault: vault, at: target)
    await expectRefusal(.alreadyExists) {
      try await HomeBackup.make(of: place.home, vault: vault, at: target)
    }
    // An engine on the backup itself, which was killed.
    let home = DataVaultHome(target, vaultParameters: place.home.vaultParameters)
    let engine = try await MessagingEngine.start(home, vault: try await unlocked(home.store))
    await expectRefusal(.damaged) {
      try await backup.verify(vault: try await unlocked(backup.store))
    }
    try await engine.stop()
  }

  @Test(arguments: ["foreign file", "link", "open to others", "vaults are a link"])
  func `a directory that no backup has left is not emptied`(fault: String) async throws {
    let vault = try await place.makeVault()
    try await place.publish(1...2, vault)
    let (side, other) = (scratch.path(".backup.new"), scratch.path("other"))
    let manager = FileManager.default
    try manager.createDirectory(atPath: other, withIntermediateDirectories: false)
    try Data([1]).write(to: URL(fileURLWithPath: other + "/mine"))
    if fault == "link" {
      try manager.createSymbolicLink(atPath: side, withDestinationPath: other)
    } else {
      try manager.createDirectory(
        atPath: side, withIntermediateDirectories: false,
        attributes: [.posixPermissions: fault == "open to others" ? 0o777 : 0o700])
    }
    switch fault {
    case "foreign file": try Data([1]).write(to: URL(fileURLWithPath: side + "/mine"))
    case "vaults are a link":
      try Data().write(to: URL(fileURLWithPath: side + "/messaging.lock"))
      try manager.createSymbolicLink(atPath: side + "/vaults", withDestinationPath: other)
    default: break
    }
    let before = try manager.subpathsOfDirectory(atPath: scratch.path.string).sorted()
    await expectRefusal(.foreignFile) {
      try await HomeBackup.make(of: place.home, vault: vault, at: target)
    }
    #expect(try manager.subpathsOfDirectory(atPath: scratch.path.string).sorted() == before)
  }

  @Test func `a home with vaults alone is backed up without a password`() async throws {
    _ = try await place.makeVault()
    let made = try await HomeBackup.make(
      of: place.home, vault: try await place.unlockedVault(), at: target)
    #expect(made.vaultCount == 1 && made.messages == nil && made.state == nil)
    let found = try await backup.verify(vault: try await unlocked(backup.store))
    #expect(found.isClean && found.vaultCount == 1)
    #expect(try await restored("home") == [])
  }

  @Test(arguments: [nil, Errno.noSpace])
  func `after a fault at any step there is no backup, or a whole one, and the next one is made`(
    errno: Errno?
  ) async throws {
    try await place.publish(1...9, try await place.makeVault())
    let before = try place.image
    let distance = Exhaustive.distance(7)
    var step = Exhaustive.first("\(String(describing: errno))", of: distance)
    while true {
      let fault: FileRecorder.Fault =
        errno.map { .failures(fromEvent: step, $0) } ?? .crash(atEvent: step)
      let recorder = FileRecorder(fault: fault)
      let home = DataVaultHome(
        place.home.path, fileSystem: RecordingFileSystem(recorder: recorder),
        vaultParameters: place.home.vaultParameters, baseVFS: RecordingVFS(recorder).name)
      let vault = try await unlocked(place.home.store)
      _ = try? await HomeBackup.make(of: home, vault: vault, at: target)
      #expect(try place.vaultFile == before.vaultFile)
      let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path.string)
      if names.contains("backup") {
        #expect(try await backup.verify(vault: try await unlocked(backup.store)).isClean)
        try FileManager.default.removeItem(atPath: target.string)
      }
      try await HomeBackup.make(of: place.home, vault: vault, at: target)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: scratch.path.string) == ["backup"])
      try FileManager.default.removeItem(atPath: target.string)
      if !recorder.hasOccurred { break }
      step += distance
    }
    #expect(step > 30)
  }

  private func expectRefusal(
    _ code: EngineError.Code, _ work: () async throws -> some Sendable,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let error = await #expect(throws: EngineError.self, sourceLocation: sourceLocation) {
      _ = try await work()
    }
    #expect(error?.code == code, sourceLocation: sourceLocation)
  }
}
