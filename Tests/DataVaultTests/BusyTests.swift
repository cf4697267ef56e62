import DataVault
import DataVaultTesting
import FileLayer
import TestSupport
import Testing

/// Locks that another holder keeps: a vault waits for them for a limited time.
@Suite struct BusyTests {
  let home = TemporaryHome()

  private var store: FileVaultStore {
    FileVaultStore(
      home: home.path, fileSystem: LinuxFileSystem(), busyTimeout: .milliseconds(50),
      attemptBusyTimeout: .milliseconds(50))
  }

  @Test func `a vault whose lock is held reports busy and stays unchanged`() async throws {
    let vault = try await store.createVault(with: credentials("right"))
    try await vault.setText("1", for: "kept")
    let lock = try home.store.lock(.messaging)
    #expect(await code { try await vault.setText("2", for: "kept") } == .busy)
    #expect(await code { try await Vault.delete(.messaging, in: store) } == .busy)
    #expect(try await vault.text("kept") == "1")
    lock.release()
    try await vault.setText("2", for: "kept")
    #expect(try await vault.text("kept") == "2")
  }

  @Test func `an attempt during another one reports busy for a right and for a wrong password`()
    async throws
  {
    _ = try await store.createVault(with: credentials("right"))
    let lock = try home.store.lockAttempts(.messaging)
    for password in ["right", "wrong"] {
      let vault = try await FastTestVault.get(.messaging, in: store)
      #expect(await code { try await vault.unlock(with: credentials(password)) } == .busy)
      #expect(await vault.isLocked)
    }
    #expect(try store.readAttempts(.messaging) == nil)
    lock.release()
    try await FastTestVault.get(.messaging, in: store).unlock(with: credentials("right"))
  }

  @Test func `a wrong password on a busy vault reports busy, not wrong`() async throws {
    _ = try await store.createVault(with: credentials("right"))
    let lock = try home.store.lock(.messaging)
    defer { lock.release() }
    let vault = try await FastTestVault.get(.messaging, in: store)
    #expect(await code { try await vault.unlock(with: credentials("wrong")) } == .busy)
    try await vault.unlock(with: credentials("right"))
  }

  @Test func `the busy error names the operation and how to find the holder`() async throws {
    try store.prepare()
    let lock = try home.store.lock(.messaging)
    defer { lock.release() }
    let error = #expect(throws: VaultError.self) {
      _ = try store.lock(.messaging)
    }
    #expect(error?.message.contains("changing vault 'messaging'") == true)
    #expect(error?.hint?.contains("fuser \(home.directory)/messaging.lock") == true)
  }
}
