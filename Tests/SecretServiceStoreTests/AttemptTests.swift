import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Glibc
import PrivateKeyring
import SecretServiceStore
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// The back-off and the retry limit of vaults in a keyring.
@Suite(.enabled(if: PrivateKeyring.isAvailable, Comment(rawValue: PrivateKeyring.skipReason)))
struct AttemptTests {
  private let keyring: PrivateKeyring
  private let time = ManualTimeSource()

  init() throws {
    keyring = try PrivateKeyring()
    try keyring.startUnlocked()
  }

  /// The vault as another process opens it, with a clock that does not advance.
  private func found() async throws -> Vault {
    var parameters = VaultParameters.cheap
    parameters.now = { [time] in time.now }
    return try await Vault.get(.messaging, in: keyring.store, parameters: parameters)
  }

  /// The error of an attempt by another process; nil when the vault opens.
  private func attempt(_ password: String) async throws -> VaultError.Code? {
    try await found().attempt(password)
  }

  @Test func `the delay after three wrong passwords survives a restart of the service`()
    async throws
  {
    _ = try await FastTestVault.create(
      .messaging, in: keyring.store, credentials: credentials("right"))
    for _ in 0..<3 { #expect(try await attempt("wrong") == .wrongPassword) }
    #expect(try await attempt("right") == .tooManyAttempts)
    keyring.stopKeyring()
    try keyring.startUnlocked()
    #expect(try await attempt("right") == .tooManyAttempts)
    #expect(try await found().status().failedAttemptCount == 3)
    time.advance(by: .seconds(1))
    #expect(try await attempt("right") == nil)
    #expect(try await found().status().failedAttemptCount == 0)
  }

  @Test func `the record belongs to the application, and without it no attempt waits`() async throws
  {
    _ = try await FastTestVault.create(
      .messaging, in: keyring.store, credentials: credentials("right"))
    for _ in 0..<3 { #expect(try await attempt("wrong") == .wrongPassword) }
    let other = SecretServiceStore(
      application: "other", home: keyring.home, busAddress: keyring.busAddress)
    #expect(try other.readAttempts(.messaging) == nil)
    try keyring.store.removeAttempts(.messaging)
    #expect(try await attempt("right") == nil)
  }

  @Test func `locking the keyring during an attempt loses no failure`() async throws {
    _ = try await FastTestVault.create(
      .messaging, in: keyring.store, credentials: credentials("right"))
    let lockedKeyring = Unchecked(value: keyring)
    for count in 1...2 {
      // Calls count from the first connection: one reads the vault, and after the try the next one
      // reads it again.
      let interruption = BusFaultInjector(atCall: count == 1 ? 10 : 11, .beforeCall) {
        lockedKeyring.value.stopKeyring()
        try? lockedKeyring.value.startLocked()
      }
      let store = SecretServiceStore(
        home: keyring.home, busAddress: keyring.busAddress, mayContinue: interruption.pass)
      let vault = try await FastTestVault.get(.messaging, in: store)
      #expect(await vault.attempt("wrong") == .wrongPassword)
      #expect(interruption.hasHappened)
      keyring.stopKeyring()
      try keyring.startUnlocked()
      let status = try await FastTestVault.get(.messaging, in: keyring.store).status()
      #expect(status.failedAttemptCount == count)
    }
  }

  @Test func `a failed attempt beyond the retry limit deletes the vault and its record`()
    async throws
  {
    let vault = try await FastTestVault.create(
      .messaging, in: keyring.store, credentials: credentials("right"))
    var policy = try await vault.policy()
    policy.retryLimit = 2
    try await vault.setPolicy(policy)
    for _ in 0..<2 { #expect(try await attempt("wrong") == .wrongPassword) }
    #expect(try await attempt("wrong") == .deletedByRetryLimit)
    #expect(try keyring.store.read(.messaging) == nil)
    #expect(try keyring.store.readAttempts(.messaging) == nil)
  }

  @Test func `the record is a private file in the home, separate from a file vault's record`()
    async throws
  {
    for store in [keyring.store, FileVaultStore(home: keyring.home)] as [any VaultStore] {
      _ = try await FastTestVault.create(.messaging, in: store, credentials: credentials("right"))
    }
    #expect(try await attempt("wrong") == .wrongPassword)
    let vaults = keyring.home.appending("vaults")
    let path = vaults.appending("messaging.secret-service.retry")
    #expect(try LinuxFileSystem().status(of: path)?.permissions == .ownerReadWrite)
    #expect(try LinuxFileSystem().status(of: vaults.appending("messaging.retry")) == nil)
    #expect(try FileVaultStore(home: keyring.home).ids() == [.messaging])
    #expect(try FileVaultStore(home: keyring.home).retiredNames() == [])
  }

  @Test func `the probe refuses a directory that others can write`() throws {
    try keyring.store.prepare()
    try keyring.store.checkAttemptRecordIsWritable(.messaging)
    chmod(keyring.home.appending("vaults").string, 0o770)
    #expect(
      code { try keyring.store.checkAttemptRecordIsWritable(.messaging) } == .permissionsTooOpen)
    #expect(code { _ = try keyring.store.lockAttempts(.messaging) } == .permissionsTooOpen)
  }
}

extension Vault {
  /// The error code of an attempt to unlock; nil when the vault opens.
  func attempt(_ password: String) -> VaultError.Code? {
    code { try unlock(with: credentials(password)) }
  }
}
