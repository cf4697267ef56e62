import DataVault
import FaultVFS
import FileRecording
import GRDB
import SealedSQLite
import SystemPackage
import Testing
import VaultCrypto

@testable import VaultedDatabase

@Suite struct ConnectionProfileTests {
  private static let name = "notes.key"

  private func path(_ temporary: TemporaryHome) -> FilePath { temporary.path.appending("notes.db") }

  private func profile(_ temporary: TemporaryHome, _ vault: Vault) -> ConnectionProfile {
    ConnectionProfile(vault: vault, name: Self.name, database: path(temporary))
  }

  private func newKey() -> SecretBytes { ConnectionProfile.generateEncryptionKey() }

  /// A profile whose every step on the disk is recorded, and its vault's.
  private func profile(
    _ temporary: TemporaryHome, recordedBy recorder: FileRecorder
  ) async throws -> ConnectionProfile {
    let home = temporary.recorded(by: recorder)
    let vault = try await home.unlockedVault(.user)
    return ConnectionProfile(
      vault: vault, name: Self.name, database: path(temporary),
      fileSystem: RecordingFileSystem(recorder: recorder), baseVFS: RecordingVFS(recorder).name)
  }

  /// A home with a profile whose database has rows.
  private func filledHome(rowCount: Int = 20) async throws -> (TemporaryHome, Vault) {
    let temporary = TemporaryHome()
    let vault = try await temporary.makeVault(.user)
    let profile = profile(temporary, vault)
    try await profile.setEncryptionKey(newKey())
    let pool = try await profile.openPool()
    try await pool.write { db in
      try db.execute(sql: "CREATE TABLE t(x)")
      for number in 0..<rowCount { try db.execute(sql: "INSERT INTO t VALUES (\(number))") }
    }
    try pool.close()
    return (temporary, vault)
  }

  /// The rows that a profile finds, and the size of its key afterwards.
  private func state(_ temporary: TemporaryHome) async throws -> String {
    let vault = try await temporary.unlockedVault(.user)
    let pool = try await profile(temporary, vault).openPool(creation: .never)
    let count = try await pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
    try pool.close()
    return "\(count ?? -1) rows, \(try await vault.item(Self.name).bytes.byteCount) bytes of key"
  }

  @Test func `a profile sets, returns and changes its key`() async throws {
    let (temporary, vault) = try await filledHome()
    let profile = profile(temporary, vault)
    let old = try await profile.encryptionKey()
    let new = newKey()
    #expect(new.byteCount == 32)
    try await profile.changeEncryptionKey(new)
    let read = try await profile.encryptionKey()
    let isNew = SecretBytes.isEqual(read, new)
    #expect(isNew)
    #expect(try await state(temporary) == "20 rows, 32 bytes of key")
    try expectKeyChange(of: path(temporary), from: old, to: new)
  }

  @Test func `setEncryptionKey() never replaces another key`() async throws {
    let (temporary, vault) = try await filledHome()
    let profile = profile(temporary, vault)
    try await profile.setEncryptionKey(try await profile.encryptionKey())
    await expectRefusal(.keyExists) { try await profile.setEncryptionKey(newKey()) }
    // The item is gone and the database exists: setEncryptionKey() accepts only its own key.
    let key = try await profile.encryptionKey()
    try await vault.removeItem(Self.name)
    await expectRefusal(.keyMissing) { _ = try await profile.encryptionKey().byteCount }
    await expectRefusal(.keyMissing) { _ = try await profile.openPool() }
    await expectRefusal(.databaseMismatch) { try await profile.setEncryptionKey(newKey()) }
    try await profile.setEncryptionKey(key)
    #expect(try await state(temporary) == "20 rows, 32 bytes of key")
    let plain = ConnectionProfile(
      vault: vault, name: "other", database: temporary.path.appending("plain.db"))
    try await DatabaseQueue(path: plain.databasePath.string)
      .write { try $0.execute(sql: "CREATE TABLE t(x)") }
    await expectRefusal(.plainDatabase) { try await plain.setEncryptionKey(newKey()) }
    await expectRefusal(.invalidArgument) {
      try await plain.setEncryptionKey(SecretBytes.random(byteCount: 31))
    }
  }

  @Test func `a refused change of key changes nothing`() async throws {
    let (temporary, vault) = try await filledHome()
    let profile = profile(temporary, vault)
    let files = { try temporary.files().filter { !$0.key.hasSuffix("-shm") } }
    let before = try files()
    await expectRefusal(.sameKey) {
      try await profile.changeEncryptionKey(try await profile.encryptionKey())
    }
    #expect(try files() == before)
    let pool = try await profile.openPool()
    await expectRefusal(.busy) { try await profile.changeEncryptionKey(newKey()) }
    try pool.close()
    #expect(try await state(temporary) == "20 rows, 32 bytes of key")
    let absent = ConnectionProfile(
      vault: vault, name: "other", database: temporary.path.appending("absent.db"))
    await expectRefusal(.databaseMissing) { try await absent.changeEncryptionKey(newKey()) }
    await vault.lock()
    await expectRefusal(.vaultLocked) { _ = try await profile.encryptionKey().byteCount }
  }

  @Test(arguments: [Errno.noSpace, nil])
  func `a full disk or a crash at each step leaves a key that opens the database`(
    errno: Errno?
  ) async throws {
    let stepCount = try await FileRecorder.atEachStep(failing: errno) { recorder, step in
      let (temporary, _) = try await filledHome()
      try? await profile(temporary, recordedBy: recorder).changeEncryptionKey(newKey())
      #expect(try await state(temporary) == "20 rows, 32 bytes of key", "at \(step)")
    }
    #expect(stepCount > 10)
  }

  @Test func `a change of key can be repeated after a crash`() async throws {
    var interruptedCount = 0
    _ = try await FileRecorder.atEachStep { recorder, step in
      let (temporary, _) = try await filledHome()
      let key = newKey()
      try? await profile(temporary, recordedBy: recorder).changeEncryptionKey(key)
      if !recorder.hasCrashed { return }
      let vault = try await temporary.unlockedVault(.user)
      if try await vault.item(Self.name).bytes.byteCount == 32 { return }
      interruptedCount += 1
      try await profile(temporary, vault).changeEncryptionKey(key)
      let isNew = SecretBytes.isEqual(try await profile(temporary, vault).encryptionKey(), key)
      #expect(isNew, "crash at \(step)")
      #expect(try await state(temporary) == "20 rows, 32 bytes of key", "crash at \(step)")
    }
    #expect(interruptedCount > 0)
  }

  @Test func `a power cut at each step, and after the next opening, loses no key`() async throws {
    for crashPoint in 0... {
      let (temporary, _) = try await filledHome()
      let initial = try temporary.files().map { (temporary.path.appending($0), $1) }
      let dying = FileRecorder(fault: .crash(atEvent: crashPoint))
      try? await profile(temporary, recordedBy: dying).changeEncryptionKey(newKey())
      let next = FileRecorder()
      try await profile(temporary, recordedBy: next).openPool().close()
      for events in [dying.events, dying.events + next.events] {
        let replay = DiskReplay(events, initialFiles: Dictionary(uniqueKeysWithValues: initial))
        let disk = Disk(
          name: "died at \(crashPoint)", marks: [], root: temporary.path,
          files: replay.files(after: .everythingUnsynchronized))
        #expect(try await state(disk.home()) == "20 rows, 32 bytes of key", "died at \(crashPoint)")
      }
      if !dying.hasCrashed { break }
    }
  }
}
