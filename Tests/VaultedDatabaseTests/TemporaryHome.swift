import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Foundation
import GRDB
import SealedVFS
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@testable import VaultedDatabase

/// A home in a directory that is removed at the end of the test, with cheap vaults.
final class TemporaryHome {
  private let folder = ScratchFolder()
  var path: FilePath { folder.path.appending("home") }
  let home: DataVaultHome

  static let parameters = VaultParameters.cheap

  init() {
    home = DataVaultHome(
      folder("home"), fileSystem: LinuxFileSystem(), vaultParameters: TemporaryHome.parameters)
  }

  /// A home whose database has rows.
  static func filled(
    _ credentials: borrowing Credentials, rowCount: Int = 500
  ) async throws -> TemporaryHome {
    let temporary = TemporaryHome()
    _ = try await temporary.makeVault(credentials)
    try await temporary.withDatabase(credentials) { pool in
      try await pool.write { database in
        try database.execute(sql: "CREATE TABLE t(x)")
        for number in 0..<rowCount {
          try database.execute(sql: "INSERT INTO t VALUES (?)", arguments: ["message \(number)"])
        }
      }
    }
    return temporary
  }

  /// The same home, over a recorder.
  func recorded(by recorder: FileRecorder) -> DataVaultHome {
    DataVaultHome(
      path, fileSystem: RecordingFileSystem(recorder: recorder),
      vaultParameters: TemporaryHome.parameters)
  }

  func makeVault(_ credentials: borrowing Credentials) async throws -> Vault {
    try await Vault.create(
      .messaging, in: home.store, credentials: credentials, parameters: Self.parameters)
  }

  func unlockedVault(_ credentials: borrowing Credentials) async throws -> Vault {
    try await home.unlockedVault(credentials)
  }

  @discardableResult
  func open(_ vault: Vault) async throws -> VaultedDatabase {
    try await VaultedDatabase.open(home, vault: vault)
  }

  func changeKey(of vault: Vault) async throws {
    try await VaultedDatabase.changeKey(of: home, vault: vault)
  }

  func secure() async throws { try await VaultedDatabase.secure(home, with: .user) }

  func deleteVault(force: Bool = false) async throws {
    try await VaultedDatabase.deleteVault(.messaging, of: home, force: force)
  }

  func isSecured() async throws -> Bool {
    try await Vault.get(.messaging, in: home.store, parameters: Self.parameters).status().isSecured
  }

  /// The bytes of the vault on the disk.
  func vaultFile() throws -> [UInt8]? { try files()["vaults/messaging.vault"] }

  /// Opens the database and counts the rows of the table t.
  func rowCount(_ credentials: borrowing Credentials) async throws -> Int? {
    try await withDatabase(credentials) { pool in
      try await pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM t") }
    }
  }

  /// Opens the database, runs a body on its pool and closes it.
  func withDatabase<R: Sendable>(
    _ credentials: borrowing Credentials, _ body: (DatabasePool) async throws -> R
  ) async throws -> R {
    let vault = try await unlockedVault(credentials)
    let database = try await VaultedDatabase.open(home, vault: vault)
    let result = try await body(database.pool)
    try database.close()
    await vault.lock()
    return result
  }

  /// Overwrites eight bytes of the database's last page.
  func damageLastPage() throws {
    let database = try FileHandle(forUpdating: URL(fileURLWithPath: home.databasePath.string))
    try database.seek(toOffset: database.seekToEnd() - 4096 + 100)
    try database.write(contentsOf: [UInt8](repeating: 0, count: 8))
    try database.close()
  }

  /// Every file under the home, with its bytes.
  func files() throws -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    let paths = try FileManager.default.subpathsOfDirectory(atPath: path.string)
    for name in paths {
      let url = URL(fileURLWithPath: path.appending(name).string)
      if let data = try? Data(contentsOf: url) { files[name] = Array(data) }
    }
    return files
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: path.appending(name).string)
  }
}

extension DataVaultHome {
  func unlockedVault(_ credentials: borrowing Credentials) async throws -> Vault {
    let vault = try await Vault.get(.messaging, in: store, parameters: TemporaryHome.parameters)
    try await vault.unlock(with: credentials)
    return vault
  }
}

/// Expects a database whose key was changed from an old one to a new one.
func expectKeyChange(
  of database: FilePath, from old: borrowing SecretBytes, to new: borrowing SecretBytes
) throws {
  guard case .sealed(let header) = try SealedVFS.inspect(database) else {
    Issue.record("not sealed")
    return
  }
  let opens = (try header.matches(key: old), try header.matches(key: new))
  #expect(opens == (false, true))
}

extension Credentials {
  static var user: Credentials { credentials("correct horse battery staple") }
}
