import DataVault
import FileLayer
import FileRecording
import Foundation
import GRDB
import SystemPackage
import Testing

@testable import VaultedDatabase

@Suite struct OpeningTests {
  private let temporary = TemporaryHome()

  @Test func `open() makes a database for a new vault, and it opens again`() async throws {
    let vault = try await temporary.makeVault(.user)
    await vault.lock()
    try await temporary.withDatabase(.user) { pool in
      try await pool.write { try $0.execute(sql: "CREATE TABLE t(x); INSERT INTO t VALUES (7)") }
    }
    let value = try await temporary.withDatabase(.user) { pool in
      try await pool.read { try Int.fetchOne($0, sql: "SELECT x FROM t") }
    }
    #expect(value == 7)
    #expect(try await vault.status().binding?.state == .bound)
  }

  @Test func `open() brings the tables up to date under messaging.lock`() async throws {
    let vault = try await temporary.makeVault(.user)
    let home = temporary.home
    let database = try await DatabaseCoordinator(home: home).open(vault) { _ in
      let lock = try home.fileSystem.lock(home.lockPath, wait: false)
      #expect(lock == nil)
    }
    try database.close()
    let lock = try #require(try home.fileSystem.lock(home.lockPath, wait: false))
    lock.release()
  }

  @Test func `open() refuses a locked vault`() async throws {
    let vault = try await temporary.makeVault(.user)
    await vault.lock()
    await expectRefusal(.vaultLocked) { try await temporary.open(vault) }
  }

  @Test func `open() refuses a home whose path is too long for SQLite, and makes nothing`()
    async throws
  {
    let temporary = TemporaryHome()
    let vault = try await temporary.makeVault(.user)
    let names = [String(repeating: "d", count: 200), String(repeating: "e", count: 250)]
    let home = DataVaultHome(names.reduce(temporary.path) { $0.appending($1) })
    let before = try temporary.files()
    await expectRefusal(.invalidArgument) { _ = try await VaultedDatabase.open(home, vault: vault) }
    #expect(try temporary.files() == before)
  }

  @Test func `every file is readable and writable only by its owner`() async throws {
    _ = try await temporary.makeVault(.user)
    try await temporary.withDatabase(.user) { pool in
      try await pool.write { try $0.execute(sql: "CREATE TABLE t(x)") }
      for name in ["messaging.db", "messaging.db-wal", "messaging.db-shm", "messaging.lock"] {
        let status = try LinuxFileSystem().status(of: temporary.path.appending(name))
        #expect(status?.permissions == .ownerReadWrite, "\(name)")
      }
    }
  }

  @Test func `open() never replaces a missing database`() async throws {
    let temporary = try await TemporaryHome.filled(.user)
    try temporary.remove("messaging.db")
    let vault = try await temporary.unlockedVault(.user)
    let before = try temporary.files()
    await expectRefusal(.databaseMissing) { try await temporary.open(vault) }
    #expect(try temporary.files() == before)
  }

  @Test func `open() refuses a database of another vault`() async throws {
    let one = try await TemporaryHome.filled(.user)
    let other = try await TemporaryHome.filled(.user)
    try one.remove("messaging.db")
    try FileManager.default.copyItem(
      atPath: other.path.appending("messaging.db").string,
      toPath: one.path.appending("messaging.db").string)
    let vault = try await one.unlockedVault(.user)
    let before = try one.files()
    await expectRefusal(.databaseMismatch) { try await one.open(vault) }
    #expect(try one.files() == before)
  }

  @Test func `open() refuses an existing database for an unbound vault`() async throws {
    let one = try await TemporaryHome.filled(.user)
    try one.remove("vaults/messaging.vault")
    let vault = try await one.makeVault(.user)
    await expectRefusal(.databaseMismatch) { try await one.open(vault) }
  }

  @Test func `open() refuses a plain SQLite file with a code of its own`() async throws {
    let vault = try await temporary.makeVault(.user)
    let plain = try DatabaseQueue(path: temporary.home.databasePath.string)
    try await plain.write { try $0.execute(sql: "CREATE TABLE t(x)") }
    try plain.close()
    await expectRefusal(.plainDatabase) { try await temporary.open(vault) }
  }

  @Test func `a creation survives a crash at each of its file operations`() async throws {
    let stepCount = try await FileRecorder.atEachStep { recorder, _ in
      let temporary = TemporaryHome()
      let vault = try await temporary.makeVault(.user)
      await vault.lock()
      let recorded = temporary.recorded(by: recorder)
      // The unlock is one of the steps: it records the attempt.
      if let crashing = try? await recorded.unlockedVault(.user),
        let database = try? await VaultedDatabase.open(recorded, vault: crashing)
      {
        try database.close()
      }
      try await temporary.withDatabase(.user) { pool in
        try await pool.write { try $0.execute(sql: "CREATE TABLE t(x)") }
      }
    }
    #expect(stepCount > 10)
  }
}

/// Runs a body that must throw this code.
func expectRefusal(
  _ code: VaultedDatabaseError.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () async throws -> Void
) async {
  do {
    try await body()
    Issue.record("no error was thrown", sourceLocation: sourceLocation)
  } catch let error as VaultedDatabaseError {
    #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
  } catch {
    Issue.record(error, sourceLocation: sourceLocation)
  }
}
