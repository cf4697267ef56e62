import DataVault
import FaultVFS
import FileRecording
import Foundation
import GRDB
import SystemPackage

@testable import VaultedDatabase

/// A home whose every step is recorded.
struct RecordedHome {
  let home: DataVaultHome
  let recorder: FileRecorder
  var store: any VaultStore { home.store }

  func mark(_ note: String) { recorder.mark(note) }

  /// An unlocked vault, with a closed database of some rows.
  func filledVault(_ credentials: borrowing Credentials, rowCount: Int) async throws -> Vault {
    let vault = try await Vault.create(
      .messaging, in: home.store, credentials: credentials, parameters: TemporaryHome.parameters)
    let database = try await VaultedDatabase.open(home, vault: vault)
    try await database.pool.write { database in
      try database.execute(sql: "CREATE TABLE t(x)")
      for number in 0..<rowCount { try database.execute(sql: "INSERT INTO t VALUES (\(number))") }
    }
    try database.close()
    return vault
  }
}

struct Recording {
  let events: [FileEvent]
  let root: FilePath

  /// Runs a body on a home whose every step is recorded.
  static func of(_ body: (RecordedHome) async throws -> Void) async throws -> Recording {
    let temporary = TemporaryHome()
    let recorder = FileRecorder()
    let vfs = RecordingVFS(recorder)
    let home = DataVaultHome(
      temporary.path, fileSystem: RecordingFileSystem(recorder: recorder),
      vaultParameters: TemporaryHome.parameters, baseVFS: vfs.name)
    try await body(RecordedHome(home: home, recorder: recorder))
    return Recording(events: recorder.events, root: temporary.path)
  }

  /// The different disks after a note, as a kill and as a power cut leave them.
  func disks(from note: String) -> [Disk] {
    let first = events.firstIndex(of: .mark(note)).map { $0 + 1 } ?? 0
    var seen: [[FilePath: [UInt8]]: [String]] = [:]
    var replay = DiskReplay(events[..<first])
    return (first...events.count).flatMap { count in
      if count > first { replay.apply(events[count - 1]) }
      let marks = events[..<count].compactMap { event in
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

struct Disk {
  let name: String
  let marks: [String]
  let root: FilePath
  let files: [FilePath: [UInt8]]

  /// Copies the files into a home of their own.
  func home() throws -> TemporaryHome {
    let temporary = TemporaryHome()
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
