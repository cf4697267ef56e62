import DataVault
import DataVaultTesting
import FileLayer
import FileRecording
import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

@Suite struct SessionTests {
  let fixture = SessionFixture()

  @Test func `a session opens the vault without its password for reads and changes`() async throws {
    let session = try await fixture.create().openSession(for: .seconds(60))
    #expect(session.remaining == .seconds(60))
    let vault = try await fixture.unlockedBySession()
    #expect(try await vault.text("name") == "value")
    try await vault.setText("other", for: "name")
    #expect(try await vault.text("name") == "other")
  }

  @Test func `the session identity resolves links and stays the same while the home is unmounted`()
    throws
  {
    let files = FileManager.default
    let scratch = ScratchFolder()
    let folder = scratch.url
    defer { withExtendedLifetime(scratch) {} }
    let mount = folder.appendingPathComponent("disk/mount")
    let vaults = mount.appendingPathComponent("home/vaults")
    try files.createDirectory(at: vaults, withIntermediateDirectories: true)
    try files.createSymbolicLink(
      atPath: folder.path + "/link", withDestinationPath: folder.path + "/disk")
    for (name, target) in [("home", "disk/./mount/home"), ("chain", "home"), ("loop", "loop")] {
      try files.createSymbolicLink(
        atPath: folder.path + "/" + name, withDestinationPath: target)
    }
    let id = try VaultID("messaging")
    let direct = FileVaultStore(home: FilePath(mount.path + "/home"))
    let others = [
      "link/mount/home", "disk/mount/./home/.", "disk/mount/none/../home", "home", "chain/.",
    ].map {
      FileVaultStore(home: FilePath(folder.path + "/" + $0))
    }
    let identity = try #require(direct.sessionIdentity(of: id))
    #expect(others.allSatisfy { $0.sessionIdentity(of: id) == identity })
    // First the home is removed, then also its mount point.
    for path in [mount.path + "/home", mount.path] {
      try files.removeItem(atPath: path)
      #expect(direct.sessionIdentity(of: id) == identity)
      #expect(others.allSatisfy { $0.sessionIdentity(of: id) == identity })
    }
    let loop = FileVaultStore(home: FilePath(folder.path + "/loop"))
    #expect(loop.sessionIdentity(of: id)?.hasSuffix("/loop/vaults/messaging.vault") == true)
  }

  @Test func `without a session the vault stays locked without an error`() async throws {
    try await fixture.create()
    let vault = try await fixture.found()
    #expect(try await !vault.unlockWithSession())
    #expect(await vault.isLocked)
    #expect(try await fixture.session() == nil)
    #expect(try await !fixture.end())
  }

  @Test func `a session opens only its own vault`() async throws {
    let other = try VaultID("other")
    try await fixture.create(other)
    try await fixture.create().openSession(for: .seconds(60))
    #expect(try await !fixture.found(other).unlockWithSession())

    // The same file in another home.
    let elsewhere = TemporaryHome()
    try elsewhere.put(fixture.home.bytes())
    let copy = try await Vault.get(.messaging, in: elsewhere.store, parameters: fixture.parameters)
    #expect(try await !copy.unlockWithSession())
  }

  @Test func `a home has one session under all its paths`() async throws {
    try await fixture.create().openSession(for: .seconds(60))
    let link = TemporaryHome()
    let path = link.path.appending("link")
    try FileManager.default.createSymbolicLink(
      atPath: path.string, withDestinationPath: fixture.home.path.string)
    let vault = try await Vault.get(
      .messaging, in: FileVaultStore(home: path), parameters: fixture.parameters)
    #expect(try await vault.unlockWithSession())
  }

  @Test func `a session expires exactly, to the fraction of a second`() async throws {
    try await fixture.create().openSession(for: .milliseconds(1500))
    let session = try #require(try await fixture.session())
    fixture.time.advance(by: .milliseconds(1499))
    #expect(session.remaining == .milliseconds(1))
    #expect(try await fixture.found().unlockWithSession())
    fixture.time.advance(by: .milliseconds(1))
    #expect(session.remaining == .zero)
    // The keyring counts whole seconds and still has the entry.
    #expect(fixture.keyring.entries.map(\.end) == [.seconds(1002)])
    #expect(try await !fixture.found().unlockWithSession())
    #expect(try await fixture.session() == nil)
  }

  @Test func `a second session of a vault replaces the first`() async throws {
    let vault = try await fixture.create()
    try await vault.openSession(for: .seconds(60))
    try await vault.openSession(for: .seconds(5))
    #expect(fixture.keyring.entries.count == 1)
    #expect(try await fixture.session()?.remaining == .seconds(5))
  }

  @Test func `lock() on the vault that began a session does not end it`() async throws {
    let vault = try await fixture.create()
    try await vault.openSession(for: .seconds(60))
    await vault.lock()
    #expect(try await vault.unlockWithSession())
  }

  @Test func `a session of a vault with new keys is reported as stale once and is ended`()
    async throws
  {
    let vault = try await fixture.create(credentials: .standard)
    try await vault.openSession(for: .seconds(60))
    // As with a program that the kernel refuses: it cannot end the session.
    fixture.keyring.refusal = EPERM
    try await vault.secure(to: credentials("other"))
    fixture.keyring.refusal = nil
    let found = try await fixture.found()
    #expect(await code { _ = try await found.unlockWithSession() } == .sessionStale)
    #expect(fixture.keyring.entries.isEmpty)
    #expect(await found.isLocked)
    #expect(try await !found.unlockWithSession())
  }

  @Test func `a session can outlive its vault and be ended without it`() async throws {
    try await fixture.create().openSession(for: .seconds(60))
    let found = try await fixture.found()
    try await Vault.delete(.messaging, in: fixture.home.store)
    #expect(await code { _ = try await found.unlockWithSession() } == .doesNotExist)
    #expect(try await fixture.end())
    #expect(fixture.keyring.entries.isEmpty)
  }

  @Test func `endAll() ends all sessions and no other key`() async throws {
    for name in ["a", "b"] {
      try await fixture.create(VaultID(name)).openSession(for: .seconds(60))
    }
    try fixture.keyring.store(secret("x"), as: "somebody:else", wholeSeconds: 60)
    #expect(try VaultSession.endAll(parameters: fixture.parameters) == 2)
    #expect(fixture.keyring.entries.map(\.name) == ["somebody:else"])
  }

  @Test func `endAll() ends the other sessions if one cannot be ended`() async throws {
    for name in (0..<8).map({ "v\($0)" }) {
      try await fixture.create(VaultID(name)).openSession(for: .seconds(60))
    }
    let name = try #require(fixture.keyring.entries.first?.name)
    fixture.keyring.irrevocableName = name
    await expect(.sessionsUnavailable) { try VaultSession.endAll(parameters: fixture.parameters) }
    #expect(fixture.keyring.entries.map(\.name) == [name])
  }

  @Test(arguments: [Duration.zero, .milliseconds(999), .seconds(-1), .seconds(366 * 86_400 + 1)])
  func `a session shorter than a second or longer than 366 days is refused`(
    duration: Duration
  ) async throws {
    let vault = try await fixture.create()
    #expect(await code { try await vault.openSession(for: duration) } == .invalidArgument)
    #expect(fixture.keyring.entries.isEmpty)
  }

  @Test func `a locked vault begins no session`() async throws {
    try await fixture.create()
    let vault = try await fixture.found()
    #expect(await code { try await vault.openSession(for: .seconds(60)) } == .locked)
  }

  @Test func `the name of a session contains the vault's id and no path`() async throws {
    try await fixture.create(VaultID("a_b-1")).openSession(for: .seconds(60))
    let name = try #require(fixture.keyring.entries.first?.name)
    #expect(name.wholeMatch(of: /datavault:a_b-1:[0-9a-f]{32}/) != nil)
  }

  @Test func `a session of another version or length opens nothing and causes no error`()
    async throws
  {
    try await fixture.create().openSession(for: .seconds(60))
    #expect(fixture.keyring.entries.map(\.bytes.count) == [41])
    fixture.keyring.rewrite { $0[0] = 2 }
    #expect(try await !fixture.found().unlockWithSession())
    fixture.keyring.rewrite { $0 = [1, 2, 3] }
    #expect(try await !fixture.found().unlockWithSession())
  }

  @Test(arguments: [EPERM, ENOSYS, EACCES, EDQUOT])
  func `a refusal of the kernel fails session calls and leaves other operations working`(
    errno: Int32
  ) async throws {
    let vault = try await fixture.create()
    fixture.keyring.refusal = errno
    #expect(await code { try await vault.openSession(for: .seconds(60)) } == .sessionsUnavailable)
    await expect(.sessionsUnavailable) {
      try VaultSession.checkAvailability(parameters: fixture.parameters)
    }
    #expect(await code { try await fixture.end() } == .sessionsUnavailable)
    #expect(await code { _ = try await fixture.session() } == .sessionsUnavailable)
    await expect(.sessionsUnavailable) { try VaultSession.endAll(parameters: fixture.parameters) }
    await expect(.sessionsUnavailable) {
      _ = try await fixture.found().unlockWithSession(waitingUpTo: .seconds(60))
    }
    #expect(try await vault.text("name") == "value")
    let found = try await fixture.found()
    #expect(try await !found.unlockWithSession())
    try await found.unlock(with: credentials("secret"))
    #expect(try await found.text("name") == "value")
  }

  @Test func `checkAvailability() leaves no key behind`() throws {
    try VaultSession.checkAvailability(parameters: fixture.parameters)
    #expect(fixture.keyring.entries.isEmpty)
  }

  @Test func `a vault in memory has no session`() async throws {
    let vault = try await FastTestVault.create(
      .messaging, in: InMemoryVaultStore(), credentials: credentials("secret"))
    #expect(await code { try await vault.openSession(for: .seconds(60)) } == .sessionsUnavailable)
    await vault.lock()
    #expect(try await !vault.unlockWithSession())
  }
}
