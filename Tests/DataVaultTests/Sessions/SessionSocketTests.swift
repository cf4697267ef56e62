import DataVault
import DataVaultTesting
import FileRecording
import Foundation
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// Sessions by the sockets of a home: `docs/reference/session-socket.md`.
@Suite struct SessionSocketTests {
  let fixture = SocketFixture()

  @Test func `a process that the kernel refuses keys to gets the session, until the lock`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    let waiting = try await fixture.serviceVault()
    #expect(try await !waiting.unlockWithSession())
    let session = try await vault.openSession(for: .seconds(60))
    #expect(!session.isInKernel)
    #expect(session.processIDs == [getpid()])
    #expect(try await waiting.unlockWithSession())
    let found = try await fixture.processes()
    #expect(found.map(\.sessionRemaining) == [.seconds(60)])

    #expect(try await fixture.lock())
    try await eventually { await waiting.isLocked }
    #expect(waiting.isLockedFromOutside)
    #expect(try await !fixture.lock())
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    listener.close()
  }

  @Test func `a process that waits is unlocked by the socket, and takes the next session too`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    var parameters = fixture.service
    let time = fixture.time
    let readCount = Mutex(0)
    // Each look of the session's watch reads the clock once.
    parameters.sinceBoot = {
      readCount.withLock { $0 += 1 }
      return time.sinceBoot
    }
    let waiting = try await Vault.get(.messaging, in: fixture.home.store, parameters: parameters)
    async let isUnlocked = waiting.unlockWithSession(waitingUpTo: .seconds(900))
    try await vault.openSession(for: .seconds(60))
    #expect(try await isUnlocked)
    try await vault.openSession(for: .seconds(7200))
    #expect(try await fixture.processes().map(\.sessionRemaining) == [.seconds(7200)])
    let count = readCount.withLock { $0 }
    // Before the second look, the watch has acted on the first one.
    try await eventually("the watch looks twice") { readCount.withLock { $0 } >= count + 2 }
    #expect(await !waiting.isLocked)
    listener.close()
  }

  @Test func `without a listener the refusal of the kernel is the error, with its hint`()
    async throws
  {
    let vault = try await fixture.makeVault()
    do throws(VaultError) {
      try await vault.openSession(for: .seconds(60))
      Issue.record("the session began")
    } catch {
      #expect(error.code == .sessionsUnavailable)
      #expect(error.hint?.contains("start the service first") == true)
    }
    let code = await code { _ = try await fixture.lock() }
    #expect(code == .sessionsUnavailable)
  }

  @Test func `a process that sees the session in the kernel holds no copy`() async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    var command = fixture.command
    fixture.serviceKeyring.refusal = nil
    command.sessionKeyring = fixture.serviceKeyring
    let found = try await Vault.get(.messaging, in: fixture.home.store, parameters: command)
    try await found.unlock(with: credentials("secret"))
    let session = try await found.openSession(for: .seconds(60))
    #expect(session.isInKernel && session.processIDs.isEmpty)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    #expect(try await fixture.serviceVault().unlockWithSession())
    withExtendedLifetime(vault) { listener.close() }
  }

  @Test
  func `a temporary failure of the kernel ends no session that it holds, also with a listener`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    fixture.serviceKeyring.refusal = nil
    var command = fixture.command
    command.sessionKeyring = fixture.serviceKeyring
    let unlocking = try await Vault.get(.messaging, in: fixture.home.store, parameters: command)
    try await unlocking.unlock(with: credentials("secret"))
    try await unlocking.openSession(for: .seconds(60))
    let opened = try await fixture.serviceVault()
    #expect(try await opened.unlockWithSession())
    fixture.serviceKeyring.refusal = ENOMEM
    try await fixture.serviceKeyring.waitForWatch()
    fixture.serviceKeyring.refusal = nil
    #expect(await !opened.isLocked)
    withExtendedLifetime(vault) { listener.close() }
  }

  @Test func `a session of the socket ends at its deadline and with the last listener`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let (first, second) = (try fixture.listen(), try fixture.listen())
    #expect(try await fixture.processes().count == 2)
    try await vault.openSession(for: .seconds(60))
    fixture.time.advance(by: .seconds(59))
    #expect(try await fixture.serviceVault().unlockWithSession())
    fixture.time.advance(by: .seconds(1))
    #expect(try await !fixture.serviceVault().unlockWithSession())

    try await vault.openSession(for: .seconds(60))
    first.close()
    #expect(try await fixture.serviceVault().unlockWithSession())
    second.close()
    #expect(try await !fixture.serviceVault().unlockWithSession())
    #expect(try fixture.names().isEmpty)
  }

  enum Change: CaseIterable, Sendable { case rotate, delete, wipe }

  @Test(arguments: Change.allCases)
  func `new keys or the removal of the vault end the sessions that other processes hold`(
    change: Change
  ) async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    try await vault.openSession(for: .seconds(60))
    let opened = try await fixture.serviceVault()
    #expect(try await opened.unlockWithSession())
    switch change {
    case .rotate:
      var kept = VaultSecrets()
      kept.append(.password(credentials("secret")))
      try await vault.rotate(keeping: kept)
    case .delete:
      try await Vault.delete(
        .messaging, in: fixture.home.store, force: false, databaseExists: false,
        parameters: fixture.command)
    case .wipe:
      try await vault.changePolicy { $0.retryLimit = 1 }
      let found = try await Vault.get(
        .messaging, in: fixture.home.store, parameters: fixture.command)
      for _ in 0..<2 { _ = await code { try await found.unlock(with: credentials("wrong")) } }
    }
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    try await eventually { await opened.isLocked }
    listener.close()
  }

  @Test func `another password keeps the sessions that other processes hold`() async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    try await vault.openSession(for: .seconds(60))
    try await vault.changePassword(to: credentials("another"))
    #expect(try await fixture.processes().map(\.sessionRemaining) == [.seconds(60)])
    listener.close()
  }

  // MARK: Attacks

  @Test func `a thousand wrong keys change nothing, are backed off and leave no byte in the log`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    try await vault.openSession(for: .seconds(60))
    let wrong = Array(repeating: UInt8(0xAB), count: 32)
    let request = fixture.opening(key: wrong, deadline: fixture.time.sinceBoot + .seconds(600))
    var results: [UInt8: Int] = [:]
    for _ in 0..<1000 { results[try #require(try fixture.send(request))[4], default: 0] += 1 }
    #expect(results == [2: 3, 3: 997])
    #expect(try await fixture.processes().map(\.sessionRemaining) == [.seconds(60)])
    #expect(fixture.log.count < 30)
    #expect(fixture.log.contains { $0.contains("its key does not open the vault") })
    #expect(!fixture.log.contains { $0.contains("171") || $0.lowercased().contains("abab") })

    let code = await code { try await vault.openSession(for: .seconds(60)) }
    #expect(code == .sessionsUnavailable)
    fixture.time.advance(by: .seconds(1))
    try await vault.openSession(for: .seconds(60))
    #expect(try await fixture.serviceVault().unlockWithSession())
    listener.close()
  }

  @Test func `frames that break the format are refused, and the next request is served`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    let status = Array("DVS1".utf8) + [1, 9] + Array("messaging".utf8)
    let future = fixture.time.sinceBoot + .seconds(60)
    let frames: [[UInt8]] = [
      [], [0], Array("DVS2".utf8) + status.dropFirst(4), status + [0], Array(status.dropLast()),
      Array("DVS1".utf8) + [9, 9] + Array("messaging".utf8),
      Array("DVS1".utf8) + [1, 9] + Array("../../../".utf8), Array(repeating: 0x41, count: 5000),
      Array("DVS1".utf8) + [1, 0],
      Array("DVS1".utf8) + [1, 255] + Array(repeating: 97, count: 255),
      fixture.opening(key: [1, 2, 3], deadline: future),
      fixture.opening(key: Array(repeating: 1, count: 32), deadline: fixture.time.sinceBoot),
      fixture.opening(
        key: Array(repeating: 1, count: 32), deadline: future + .seconds(400 * 86_400)),
    ]
    for frame in frames {
      // A peer that has sent too much can see its connection reset.
      if let reply = try fixture.send(frame) { #expect(reply[4] == 4, "\(frame.count)") }
    }
    #expect(try fixture.send(status)?.count == 34)
    try await vault.openSession(for: .seconds(60))
    listener.close()
  }

  @Test func `a client that sends nothing is closed at its time limit, and too many are closed`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen(timeLimit: .milliseconds(300))
    let path = try fixture.socketPath()
    let slow = try (0..<8).map { _ in try RawClient(path) }
    for client in slow { client.send(Array("DV".utf8)) }
    try await eventually { try fixture.send(Array("DVS1".utf8)) != nil }
    for client in slow { #expect(client.reply() == nil) }
    try await eventually { await code { try await vault.openSession(for: .seconds(60)) } == nil }
    #expect(fixture.log.contains { $0.contains("time limit") })
    listener.close()
  }

  @Test func `a directory that is a link, or that others can use, is refused by both sides`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let target = fixture.home.path.appending("elsewhere").string
    mkdir(target, 0o700)
    symlink(target, fixture.runDirectory.string)
    #expect(throws: VaultError.self) { try fixture.listen() }
    let linked = await code { _ = try await fixture.processes() }
    #expect(linked == .foreignFile)
    let lock = await code { try await vault.openSession(for: .seconds(60)) }
    #expect(lock == .foreignFile)

    unlink(fixture.runDirectory.string)
    mkdir(fixture.runDirectory.string, 0o700)
    chmod(fixture.runDirectory.string, 0o750)
    #expect(throws: VaultError.self) { try fixture.listen() }
    let open = await code { _ = try await fixture.processes() }
    #expect(open == .permissionsTooOpen)
  }

  @Test func `planted entries get nothing, stale sockets are removed and live ones are not`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let first = try fixture.listen()
    let live = try fixture.socketPath()
    let directory = fixture.runDirectory.string
    try Data().write(to: URL(fileURLWithPath: directory + "/1-a.sock"))
    symlink(live, directory + "/2-a.sock")
    // A killed process leaves its socket.
    let stale = directory + "/3-a.sock"
    _ = try Program.run(
      "/usr/bin/python3",
      ["-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", stale])
    #expect(FileManager.default.fileExists(atPath: stale))
    #expect(try await fixture.processes().count == 1)
    let problems = try await fixture.problems()
    #expect(problems.count == 2)
    #expect(problems.allSatisfy { $0.contains("it is not a socket") })
    let session = try await vault.openSession(for: .seconds(60))
    #expect(session.processIDs.count == 1)

    let second = try fixture.listen()
    #expect(!FileManager.default.fileExists(atPath: stale))
    #expect(FileManager.default.fileExists(atPath: live))
    #expect(try await fixture.processes().count == 2)
    first.close()
    second.close()
  }

  @Test(.enabled(if: getuid() == 0, "acting as another user needs root"))
  func `another user is neither served nor asked`() async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    let path = try fixture.socketPath()
    let directory = fixture.runDirectory.string
    // As if the modes were wrong: the check of the peer remains.
    for (path, mode) in [(fixture.home.path.string, 0o755), (directory, 0o777), (path, 0o777)] {
      chmod(path, mode_t(mode))
    }
    let other = ["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c"]
    let request = Array("DVS1".utf8) + [1, 9] + Array("messaging".utf8)
    let asking = try Program.run(
      "/usr/bin/setpriv",
      other + [
        """
        import socket, sys
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
        try:
          s.send(bytes.fromhex(sys.argv[2])); s.shutdown(1); print(len(s.recv(99)))
        except (BrokenPipeError, ConnectionResetError): print(0)
        """, path, request.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined(),
      ])
    #expect(asking.text == "0\n", "\(asking.errors)")
    try await eventually { fixture.log.contains { $0.contains("of user 65534") } }

    // A socket of another user in a directory that was once open.
    _ = try Program.run(
      "/usr/bin/setpriv",
      other + [
        "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])",
        directory + "/9-a.sock",
      ])
    chmod(directory, 0o700)
    #expect(try await fixture.problems().contains { $0.contains("it belongs to user 65534") })
    let session = try await vault.openSession(for: .seconds(60))
    #expect(session.processIDs.count == 1)
    chown(directory, 65534, 65534)
    let foreign = await code { _ = try await fixture.processes() }
    #expect(foreign == .foreignFile)
    listener.close()
  }

  @Test func `a home whose path is longer than a socket's path has sockets too`() async throws {
    let base = ScratchFolder()
    let long = base.path(String(repeating: "d", count: 200))
    mkdir(long, 0o700)
    let fixture = SocketFixture(in: long)
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    #expect(try await vault.openSession(for: .seconds(60)).processIDs.count == 1)
    listener.close()
    #expect(try fixture.names().isEmpty)
  }
}
