import DataVault
import FaultVFS
import FileLayer
import Foundation
import GRDB
import SystemPackage
import Testing

@testable import VaultedDatabase

/// Vault and database write into one log; every prefix of it, with and without what was never
/// synchronized, is a disk that must open.
@Suite struct PowerCutTests {
  @Test func aFirstStartSurvivesAPowerCutAtEachStep() async throws {
    let recording = try await record { home in
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

  @Test func securingSurvivesAPowerCutAtEachStep() async throws {
    let recording = try await record { home in
      let vault = try await Vault.create(
        .messaging, in: home.store, credentials: .standard, parameters: TemporaryHome.parameters)
      let database = try await VaultedDatabase.open(home.home, vault: vault)
      try await database.pool.write { database in
        try database.execute(sql: "CREATE TABLE t(x)")
        for number in 0..<50 { try database.execute(sql: "INSERT INTO t VALUES (\(number))") }
      }
      try database.close()
      await vault.lock()
      home.mark("filled")
      try await VaultedDatabase.secure(home.home, with: .user)
      home.mark("secured")
    }
    for disk in recording.disks(from: "filled") {
      let temporary = try disk.home()
      let isSecured = try await Vault.get(
        .messaging, in: temporary.home.store, parameters: TemporaryHome.parameters
      ).status().isSecured
      let count = try await temporary.withDatabase(isSecured ? .user : .standard) { pool in
        try await pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
      }
      #expect(count == 50, "\(disk.name)")
      if disk.marks.contains("secured") { #expect(isSecured, "\(disk.name)") }
    }
  }

  /// A home whose every step is logged.
  private struct RecordedHome {
    let home: DataVaultHome
    let recorder: FileRecorder
    var store: any VaultStore { home.store }

    func mark(_ note: String) { recorder.mark(note) }
  }

  private func record(
    _ body: (RecordedHome) async throws -> Void
  ) async throws -> Recording {
    let temporary = try TemporaryHome()
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder)
    let home = DataVaultHome(
      temporary.path, fileSystem: RecordingFileSystem(recorder: recorder),
      vaultParameters: TemporaryHome.parameters, baseVFS: vfs.name)
    try await body(RecordedHome(home: home, recorder: recorder))
    return Recording(events: recorder.events, root: temporary.path)
  }

  private struct Recording {
    let events: [FileEvent]
    let root: FilePath

    /// The different disks since a note, as a kill and as a power cut leaves them.
    func disks(from note: String) -> [Disk] {
      let first = events.firstIndex(of: .mark(note)).map { $0 + 1 } ?? 0
      var seen: [[FilePath: [UInt8]]: [String]] = [:]
      return (first...events.count).flatMap { count in
        let prefix = events[..<count]
        let replay = DiskReplay(prefix)
        let marks = prefix.compactMap { event in
          if case .mark(let note) = event { note } else { nil }
        }
        return [
          Disk(
            name: "killed after \(count)", marks: marks, root: root,
            files: replay.files(after: .nothing)),
          Disk(
            name: "power cut after \(count)", marks: marks, root: root,
            files: replay.files(after: .everythingUnsynchronized)),
        ].filter { disk in
          defer { seen[disk.files] = disk.marks }
          return seen[disk.files] != disk.marks
        }
      }
    }
  }

  private struct Disk {
    let name: String
    let marks: [String]
    let root: FilePath
    let files: [FilePath: [UInt8]]

    /// Puts the files into a home of their own.
    func home() throws -> TemporaryHome {
      let temporary = try TemporaryHome()
      let manager = FileManager.default
      let vaults = temporary.path.appending("vaults").string
      try manager.createDirectory(
        atPath: vaults, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      for (path, bytes) in files {
        let target = temporary.path.string + path.string.dropFirst(root.string.count)
        _ = manager.createFile(
          atPath: target, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
      }
      return temporary
    }
  }
}
