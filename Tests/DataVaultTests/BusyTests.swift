import DataVault
import DataVaultTesting
import FileLayer
import Testing

/// Locks that somebody else does not give back: a vault waits for them, but not for ever.
@Suite struct BusyTests {
  let home = TemporaryHome()

  private var store: FileVaultStore {
    FileVaultStore(
      home: home.path, fileSystem: LinuxFileSystem(), patience: .milliseconds(50),
      attemptPatience: .milliseconds(50))
  }

  @Test func `a vault that somebody keeps changing is busy, and as it was`() async throws {
    let vault = try await FastTestVault.create(
      .messaging, in: store, credentials: credentials("right"))
    try await vault.setText("1", for: "kept")
    let lock = try home.store.lock(.messaging)
    #expect(await code { try await vault.setText("2", for: "kept") } == .busy)
    #expect(await code { try await Vault.delete(.messaging, in: store) } == .busy)
    #expect(try await vault.text("kept") == "1")
    lock.release()
    try await vault.setText("2", for: "kept")
    #expect(try await vault.text("kept") == "2")
  }

  @Test func `while somebody else attempts, nobody is answered, neither right nor wrong`()
    async throws
  {
    _ = try await FastTestVault.create(.messaging, in: store, credentials: credentials("right"))
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

  @Test func `a wrong password on a vault that is busy is not answered as wrong`() async throws {
    _ = try await FastTestVault.create(.messaging, in: store, credentials: credentials("right"))
    let lock = try home.store.lock(.messaging)
    defer { lock.release() }
    let vault = try await FastTestVault.get(.messaging, in: store)
    #expect(await code { try await vault.unlock(with: credentials("wrong")) } == .busy)
    try await vault.unlock(with: credentials("right"))
  }

  @Test func `the error says what was being done and how to find out who does it`() async throws {
    try store.prepare()
    let lock = try home.store.lock(.messaging)
    defer { lock.release() }
    do throws(VaultError) {
      _ = try store.lock(.messaging)
      Issue.record("it was given")
    } catch {
      #expect(error.message.contains("changing vault 'messaging'"))
      #expect(error.hint?.contains("fuser \(home.directory)/messaging.lock") == true)
    }
  }
}
