import DataVault
import DataVaultTesting
import FileLayer
import Foundation
import Glibc
import SystemPackage
import Testing
import VaultCrypto

@Suite struct SessionTests {
  let bench = SessionFixture()

  @Test func `a session opens the vault without its password, for reading and for changing`()
    async throws
  {
    let session = try await bench.create().openSession(for: .seconds(60))
    #expect(session.remaining == .seconds(60))
    let vault = try await bench.found()
    #expect(try await vault.unlockWithSession())
    #expect(try await vault.text("name") == "value")
    try await vault.setText("other", for: "name")
    #expect(try await vault.text("name") == "other")
  }

  @Test func `the place of a session is the same while its home is unmounted, links resolved`()
    throws
  {
    let files = FileManager.default
    let folder = files.temporaryDirectory.appendingPathComponent("identity-\(UUID().uuidString)")
    defer { try? files.removeItem(at: folder) }
    let mount = folder.appendingPathComponent("disk/mount")
    let vaults = mount.appendingPathComponent("home/vaults")
    try files.createDirectory(at: vaults, withIntermediateDirectories: true)
    try files.createSymbolicLink(
      atPath: folder.path + "/link", withDestinationPath: folder.path + "/disk")
    let id = try VaultID("messaging")
    let direct = FileVaultStore(home: FilePath(mount.path + "/home"))
    let linked = FileVaultStore(home: FilePath(folder.path + "/link/mount/home"))
    let identity = try #require(direct.sessionIdentity(of: id))
    #expect(linked.sessionIdentity(of: id) == identity)
    // The home is gone, then its mount point too.
    for path in [mount.path + "/home", mount.path] {
      try files.removeItem(atPath: path)
      #expect(direct.sessionIdentity(of: id) == identity)
      #expect(linked.sessionIdentity(of: id) == identity)
    }
  }

  @Test func `without a session the vault stays locked, and that is no error`() async throws {
    try await bench.create()
    let vault = try await bench.found()
    #expect(try await !vault.unlockWithSession())
    #expect(await vault.isLocked)
    #expect(try await bench.session() == nil)
    #expect(try await !bench.end())
  }

  @Test func `a session opens its own vault only`() async throws {
    let other = try VaultID("other")
    try await bench.create(other)
    try await bench.create().openSession(for: .seconds(60))
    #expect(try await !bench.found(other).unlockWithSession())

    // The same file in another home.
    let elsewhere = TemporaryHome()
    try elsewhere.put(bench.home.bytes())
    let copy = try await Vault.get(.messaging, in: elsewhere.store, parameters: bench.parameters)
    #expect(try await !copy.unlockWithSession())
  }

  @Test func `one home has one session by whatever path it is reached`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    let link = TemporaryHome()
    let path = link.path.appending("link")
    try FileManager.default.createSymbolicLink(
      atPath: path.string, withDestinationPath: bench.home.path.string)
    let vault = try await Vault.get(
      .messaging, in: FileVaultStore(home: path), parameters: bench.parameters)
    #expect(try await vault.unlockWithSession())
  }

  @Test func `a session ends with its time, to the fraction of a second`() async throws {
    try await bench.create().openSession(for: .milliseconds(1500))
    let session = try #require(try await bench.session())
    bench.time.advance(by: .milliseconds(1499))
    #expect(session.remaining == .milliseconds(1))
    #expect(try await bench.found().unlockWithSession())
    bench.time.advance(by: .milliseconds(1))
    #expect(session.remaining == .zero)
    // The keyring, which counts whole seconds, has it still.
    #expect(bench.keyring.entries.map(\.end) == [.seconds(1002)])
    #expect(try await !bench.found().unlockWithSession())
    #expect(try await bench.session() == nil)
  }

  @Test func `unlocking again takes the session's place`() async throws {
    let vault = try await bench.create()
    try await vault.openSession(for: .seconds(60))
    try await vault.openSession(for: .seconds(5))
    #expect(bench.keyring.entries.count == 1)
    #expect(try await bench.session()?.remaining == .seconds(5))
  }

  @Test func `locking the vault that began it leaves the session`() async throws {
    let vault = try await bench.create()
    try await vault.openSession(for: .seconds(60))
    await vault.lock()
    #expect(try await vault.unlockWithSession())
  }

  @Test func `another password leaves the session as it is`() async throws {
    let vault = try await bench.create()
    try await vault.openSession(for: .seconds(60))
    try await vault.changePassword(to: credentials("other"))
    #expect(try await bench.found().unlockWithSession())
  }

  @Test func `a session of a vault with new keys says so once and is ended`() async throws {
    let vault = try await bench.create(credentials: .standard)
    try await vault.openSession(for: .seconds(60))
    // As by a program that the kernel refuses: it cannot end the session.
    bench.keyring.refusal = EPERM
    try await vault.secure(to: credentials("other"))
    bench.keyring.refusal = nil
    let found = try await bench.found()
    #expect(await code { _ = try await found.unlockWithSession() } == .sessionStale)
    #expect(bench.keyring.entries.isEmpty)
    #expect(await found.isLocked)
    #expect(try await !found.unlockWithSession())
  }

  @Test func `a session outlives its vault, and can be ended without it`() async throws {
    try await bench.create().openSession(for: .seconds(60))
    let found = try await bench.found()
    try await Vault.delete(.messaging, in: bench.home.store)
    #expect(await code { _ = try await found.unlockWithSession() } == .doesNotExist)
    #expect(try await bench.end())
    #expect(bench.keyring.entries.isEmpty)
  }

  @Test func `all sessions are ended, and nothing else`() async throws {
    for name in ["a", "b"] {
      try await bench.create(VaultID(name)).openSession(for: .seconds(60))
    }
    try bench.keyring.store(secret("x"), as: "somebody:else", wholeSeconds: 60)
    #expect(try VaultSession.endAll(parameters: bench.parameters) == 2)
    #expect(bench.keyring.entries.map(\.name) == ["somebody:else"])
  }

  @Test func `a session that cannot be ended saves no other one`() async throws {
    for name in (0..<8).map({ "v\($0)" }) {
      try await bench.create(VaultID(name)).openSession(for: .seconds(60))
    }
    let name = try #require(bench.keyring.entries.first?.name)
    bench.keyring.irrevocableName = name
    #expect(
      await code { try VaultSession.endAll(parameters: bench.parameters) } == .sessionsUnavailable)
    #expect(bench.keyring.entries.map(\.name) == [name])
  }

  @Test(arguments: [Duration.zero, .milliseconds(999), .seconds(-1), .seconds(366 * 86_400 + 1)])
  func `a session is neither shorter than a second nor longer than a year`(
    duration: Duration
  ) async throws {
    let vault = try await bench.create()
    #expect(await code { try await vault.openSession(for: duration) } == .invalidArgument)
    #expect(bench.keyring.entries.isEmpty)
  }

  @Test func `a locked vault begins no session`() async throws {
    try await bench.create()
    let vault = try await bench.found()
    #expect(await code { try await vault.openSession(for: .seconds(60)) } == .locked)
  }

  @Test func `the name of a session has the vault's id, and no path`() async throws {
    try await bench.create(VaultID("a_b-1")).openSession(for: .seconds(60))
    let name = try #require(bench.keyring.entries.first?.name)
    #expect(name.wholeMatch(of: /datavault:a_b-1:[0-9a-f]{32}/) != nil)
  }

  @Test func `a session of another version or another length opens nothing and breaks nothing`()
    async throws
  {
    try await bench.create().openSession(for: .seconds(60))
    #expect(bench.keyring.entries.map(\.bytes.count) == [41])
    bench.keyring.rewrite { $0[0] = 2 }
    #expect(try await !bench.found().unlockWithSession())
    bench.keyring.rewrite { $0 = [1, 2, 3] }
    #expect(try await !bench.found().unlockWithSession())
  }

  @Test(arguments: [EPERM, ENOSYS, EACCES, EDQUOT])
  func `a kernel that refuses is reported to who asked, and lived without by all others`(
    errno: Int32
  ) async throws {
    let vault = try await bench.create()
    bench.keyring.refusal = errno
    #expect(await code { try await vault.openSession(for: .seconds(60)) } == .sessionsUnavailable)
    #expect(
      await code { try VaultSession.checkAvailability(parameters: bench.parameters) }
        == .sessionsUnavailable)
    #expect(await code { try await bench.end() } == .sessionsUnavailable)
    #expect(await code { _ = try await bench.session() } == .sessionsUnavailable)
    #expect(
      await code { try VaultSession.endAll(parameters: bench.parameters) } == .sessionsUnavailable)
    #expect(
      await code {
        _ = try await bench.found().unlockWithSession(waitingUpTo: .seconds(60))
      } == .sessionsUnavailable)
    #expect(try await vault.text("name") == "value")
    let found = try await bench.found()
    #expect(try await !found.unlockWithSession())
    try await found.unlock(with: credentials("secret"))
    #expect(try await found.text("name") == "value")
  }

  @Test func `trying whether there can be sessions leaves nothing`() throws {
    try VaultSession.checkAvailability(parameters: bench.parameters)
    #expect(bench.keyring.entries.isEmpty)
  }

  @Test func `a vault in memory has no session`() async throws {
    let vault = try await FastTestVault.create(
      .messaging, in: InMemoryVaultStore(), credentials: credentials("secret"))
    #expect(await code { try await vault.openSession(for: .seconds(60)) } == .sessionsUnavailable)
    await vault.lock()
    #expect(try await !vault.unlockWithSession())
  }
}
