import DataVault
import FileRecording
import GRDB
import SystemPackage
import Testing

@testable import VaultedDatabase

/// Vault and database write into one record.
///
/// Every prefix of it, with and without the unsynchronized writes, is a disk that must open.
@Suite struct PowerCutTests {
  @Test func `a first start survives a power cut at each step`() async throws {
    let recording = try await Recording.of { home in
      let vault = try await Vault.create(
        .messaging, in: home.store, credentials: .user, parameters: TemporaryHome.parameters)
      home.mark("made")
      let database = try await VaultedDatabase.open(home.home, vault: vault)
      try await database.pool.write { try $0.execute(sql: "CREATE TABLE t(x)") }
      try await database.pool.write { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
      home.mark("inserted")
      try database.close()
    }
    for disk in recording.disks(from: "made") {
      let temporary = try disk.home()
      let count = try await temporary.withDatabase(.user) { pool in
        try await pool.read { database in
          try database.tableExists("t") ? Int.fetchOne(database, sql: "SELECT count(*) FROM t") : 0
        }
      }
      if disk.marks.contains("inserted") { #expect(count == 1, "\(disk.name)") }
    }
  }

  @Test func `securing survives a power cut at each step`() async throws {
    let recording = try await Recording.of { home in
      await (try home.filledVault(.standard, rowCount: 50)).lock()
      home.mark("filled")
      try await VaultedDatabase.secure(home.home, with: .user)
      home.mark("secured")
    }
    for disk in recording.disks(from: "filled") {
      let temporary = try disk.home()
      let isSecured = try await temporary.isSecured()
      let count = try await temporary.rowCount(isSecured ? .user : .standard)
      #expect(count == 50, "\(disk.name)")
      if disk.marks.contains("secured") { #expect(isSecured, "\(disk.name)") }
    }
  }

  @Test func `changing the key survives a power cut at each step`() async throws {
    let recording = try await Recording.of { home in
      let vault = try await home.filledVault(.user, rowCount: 50)
      home.mark("filled")
      try await VaultedDatabase.changeKey(of: home.home, vault: vault)
      home.mark("changed")
    }
    for disk in recording.disks(from: "filled") {
      let temporary = try disk.home()
      let count = try await temporary.rowCount(.user)
      #expect(count == 50, "\(disk.name)")
      let hasPending = try await temporary.unlockedVault(.user).databaseKeys().hasPending()
      #expect(!hasPending, "\(disk.name)")
    }
  }

  @Test func `salvaging survives a power cut at each step`() async throws {
    let recording = try await Recording.of { home in
      let vault = try await home.filledVault(.user, rowCount: 50)
      home.mark("filled")
      let coordinator = DatabaseCoordinator(home: home.home)
      _ = try await coordinator.salvage(of: vault, anchorStorage: NoAnchors()) { _, pool in
        try pool.write { try $0.execute(sql: "INSERT INTO t VALUES (50)") }
      }
      home.mark("salvaged")
    }
    for disk in recording.disks(from: "filled") {
      let temporary = try disk.home()
      let count = try await temporary.rowCount(.user)
      let isSalvaged = try temporary.files().keys.contains("messaging.db.damaged-1")
      #expect(count == (isSalvaged ? 51 : 50), "\(disk.name)")
      if disk.marks.contains("salvaged") { #expect(isSalvaged, "\(disk.name)") }
    }
  }

  /// A rename reached the file system but not the disk when the process died.
  ///
  /// The next opening finds the new file and drops the old key, and then the power fails.
  @Test func `a power cut after the opening that finished a change of key loses no key`()
    async throws
  {
    let stepCount = try await FileRecorder.atEachStep { dying, crashPoint in
      let temporary = try await TemporaryHome.filled(.user, rowCount: 1)
      let initial = try temporary.files().map { (temporary.path.appending($0), $1) }
      let dyingHome = temporary.recorded(by: dying)
      if let vault = try? await dyingHome.unlockedVault(.user) {
        try? await VaultedDatabase.changeKey(of: dyingHome, vault: vault)
      }
      let next = FileRecorder()
      let home = temporary.recorded(by: next)
      let vault = try await home.unlockedVault(.user)
      try await VaultedDatabase.open(home, vault: vault).close()
      let files = DiskReplay(
        dying.events + next.events, initialFiles: Dictionary(uniqueKeysWithValues: initial)
      ).files(after: .everythingUnsynchronized)
      let disk = Disk(name: "died at \(crashPoint)", marks: [], root: temporary.path, files: files)
      let count = try await disk.home().rowCount(.user)
      #expect(count == 1, "\(disk.name)")
    }
    #expect(stepCount > 10)
  }
}

/// A database that is never asked for an anchor.
private struct NoAnchors: AnchorStorage {
  func page(in db: Database) throws -> AnchorHistory? { nil }
  func add(_ id: [UInt8], keeping kept: DatabaseAnchor?, in db: Database) throws -> Int64 { 0 }
}
