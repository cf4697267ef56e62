import DataVault
import DataVaultTesting
import FileLayer
import Glibc
import SystemPackage
import TestSupport
import Testing

@Suite struct FilePermissionTests {
  let home = TemporaryHome()

  private func make() async throws -> Vault {
    try await home.store.createVault(with: credentials("p"))
  }

  private func status(_ path: FilePath) throws -> FileStatus {
    try #require(try LinuxFileSystem().status(of: path))
  }

  @Test func `files belong to their owner alone under any umask`() async throws {
    _ = try await make()
    #expect(try status(home.file()).permissions == [.ownerReadWrite])
    #expect(try status(home.directory).permissions == [.ownerReadWriteExecute])
    #expect(try status(home.directory.appending("messaging.lock")).permissions == [.ownerReadWrite])
  }

  @Test func `a missing home is created with its parent directories`() async throws {
    let store = FileVaultStore(home: home.path.appending("a/b"))
    _ = try await store.createVault(with: credentials("p"))
    #expect(try status(home.path.appending("a")).permissions == [.ownerReadWriteExecute])
    #expect(try await Vault.list(in: store) == [.messaging])
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o666])
  func `a file that others can read or write is refused with a chmod command as the hint`(
    mode: mode_t
  ) async throws {
    let vault = try await make()
    chmod(home.file().string, mode)
    let before = try home.bytes()
    for attempt in 0..<4 {
      let error = await #expect(throws: VaultError.self) {
        switch attempt {
        case 0: try await vault.unlock(with: credentials("p"))
        case 1: try await vault.setText("1", for: "a")
        case 2: _ = try await Vault.exists(.messaging, in: home.store)
        default: try await Vault.delete(.messaging, in: home.store, force: true)
        }
      }
      #expect(error?.code == .permissionsTooOpen)
      #expect(error?.hint == "chmod 600 \(home.file())")
    }
    #expect(try home.bytes() == before)
  }

  @Test func `a directory that others can write is refused`() async throws {
    let vault = try await make()
    chmod(home.directory.string, 0o770)
    #expect(await code { try await vault.unlock(with: credentials("p")) } == .permissionsTooOpen)
    #expect(await code { _ = try await Vault.list(in: home.store) } == .permissionsTooOpen)
  }

  @Test func `a symbolic link to a file or a directory is refused`() async throws {
    let vault = try await make()
    let elsewhere = home.path.appending("elsewhere")
    rename(home.file().string, elsewhere.string)
    symlink(elsewhere.string, home.file().string)
    #expect(await code { try await vault.unlock(with: credentials("p")) } == .unreadable)
    #expect(await code { _ = try await Vault.exists(.messaging, in: home.store) } == .unreadable)
    #expect(await code { _ = try await make() } == .unreadable)
    rename(home.directory.string, elsewhere.string + "-vaults")
    symlink(elsewhere.string + "-vaults", home.directory.string)
    #expect(await code { _ = try await Vault.list(in: home.store) } == .storeUnavailable)
  }

  @Test func `a dangling link is not an absent vault`() async throws {
    _ = try await make()
    unlink(home.file().string)
    symlink("/nowhere", home.file().string)
    #expect(await code { _ = try await Vault.exists(.messaging, in: home.store) } == .unreadable)
  }

  @Test func `a home that is a file is unavailable, not empty`() async throws {
    let file = home.path.appending("file")
    try LinuxFileSystem().replace(file, with: [], permissions: .ownerReadWrite, owner: nil)
    let store = FileVaultStore(home: file)
    #expect(await code { _ = try await Vault.exists(.messaging, in: store) } == .unreadable)
    #expect(await code { _ = try await Vault.list(in: store) } != nil)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
  func `a daemon's vault still belongs to the daemon after root changes it`() async throws {
    let vault = try await make()
    let daemon = FileOwner(userID: 12345, groupID: 54321)
    for path in [home.file(), home.directory] {
      chown(path.string, daemon.userID, daemon.groupID)
    }
    unlink(home.directory.appending("messaging.lock").string)
    try await vault.setText("1", for: "a")
    #expect(try status(home.file()).owner == daemon)
    #expect(try status(home.directory.appending("messaging.lock")).owner == daemon)
    // A vault that root creates in the daemon's directory also belongs to the daemon.
    let other = try VaultID("other")
    _ = try await FastTestVault.create(other, in: home.store, credentials: credentials("p"))
    #expect(try status(home.file(other)).owner == daemon)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
  func `the first files that root creates in a daemon's home belong to the daemon`() async throws {
    let daemon = FileOwner(userID: 12345, groupID: 54321)
    chown(home.path.string, daemon.userID, daemon.groupID)
    _ = try await make()
    for path in [home.directory, home.file(), home.directory.appending("messaging.lock")] {
      #expect(try status(path).owner == daemon, "\(path)")
    }
  }
}
