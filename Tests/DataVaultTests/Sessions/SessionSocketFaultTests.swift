import DataVault
import DataVaultTesting
import Dispatch
import FileRecording
import Foundation
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing
import VaultCrypto

/// Session sockets whose processes differ in what they see, do not answer, or answer late.
@Suite struct SessionSocketFaultTests {
  let fixture = SocketFixture()

  /// Opens a session in the keyring of the service, as a command for which the kernel does not refuse keys.
  private func openInKernel(for duration: Duration) async throws -> VaultSession {
    fixture.serviceKeyring.refusal = nil
    var command = fixture.command
    command.sessionKeyring = fixture.serviceKeyring
    let vault = try await Vault.get(.messaging, in: fixture.home.store, parameters: command)
    try await vault.unlock(with: credentials("secret"))
    return try await vault.openSession(for: duration)
  }

  // MARK: Different views of the kernel

  @Test func `lock ends a session in the kernel that only the process with the socket sees`()
    async throws
  {
    _ = try await fixture.makeVault()
    let listener = try fixture.listen()
    _ = try await openInKernel(for: .seconds(60))
    #expect(try await fixture.lock())
    #expect(fixture.serviceKeyring.entries.isEmpty)
    #expect(try await !fixture.lock())
    listener.close()
  }

  @Test func `lock fails if the process with the socket cannot end its session`() async throws {
    _ = try await fixture.makeVault()
    let listener = try fixture.listen()
    _ = try await openInKernel(for: .seconds(60))
    fixture.serviceKeyring.irrevocableName = fixture.serviceKeyring.entries.first?.name
    let code = await code { _ = try await fixture.lock() }
    #expect(code == .sessionsUnavailable)
    listener.close()
  }

  @Test func `new keys end a session in the kernel that only the process with the socket sees`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    _ = try await openInKernel(for: .seconds(60))
    var kept = VaultSecrets()
    kept.append(.password(credentials("secret")))
    try await vault.rotate(keeping: kept)
    #expect(fixture.serviceKeyring.entries.isEmpty)
    listener.close()
  }

  @Test func `a shorter session in the kernel replaces a longer one that came by the socket`()
    async throws
  {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    try await vault.openSession(for: .seconds(28800))
    _ = try await openInKernel(for: .seconds(60))
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    let found = try await VaultSession.find(
      .messaging, in: fixture.home.store, parameters: fixture.service)
    #expect(found?.remaining == .seconds(60))
    listener.close()
  }

  @Test func `a shorter session of the socket replaces a longer one in the kernel`() async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    _ = try await openInKernel(for: .seconds(28800))
    try await vault.openSession(for: .seconds(60))
    #expect(fixture.serviceKeyring.entries.isEmpty)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [.seconds(60)])
    listener.close()
  }

  @Test func `lock --all reaches the processes of a home whose vault is missing`() async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    try await vault.openSession(for: .seconds(60))
    let file = fixture.home.path.appending("vaults/messaging.vault").string
    try FileManager.default.removeItem(atPath: file)
    #expect(try await fixture.lockAll() == 1)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    let silent = try SilentListener("1-0.sock", in: fixture.runDirectory)
    var command = fixture.command
    command.socketTimeLimit = .milliseconds(200)
    let code = await code {
      _ = try await VaultSession.end(nil, in: fixture.home.store, parameters: command)
    }
    #expect(code == .busy)
    withExtendedLifetime(silent) { listener.close() }
  }

  @Test(.enabled(if: getuid() == 0, "giving a home to another user needs root"))
  func `lock fails where only another user sees the sessions of the kernel`() async throws {
    _ = try await fixture.makeVault()
    var command = fixture.command
    command.sessionKeyring = ManualKeyring(time: fixture.time)
    #expect(
      try await VaultSession.end(.messaging, in: fixture.home.store, parameters: command).count == 0
    )
    chown(fixture.home.path.string, 65534, 65534)
    let code = await code {
      _ = try await VaultSession.end(.messaging, in: fixture.home.store, parameters: command)
    }
    #expect(code == .sessionsUnavailable)
  }

  // MARK: Processes that do not answer

  @Test func `processes that do not answer hide no process that does`() async throws {
    var command = fixture.command
    command.socketTimeLimit = .seconds(3)
    let vault = try await Vault.create(
      .messaging, in: fixture.home.store, credentials: credentials("secret"), parameters: command)
    let listener = try fixture.listen()
    let silent = try (0..<40).map { try SilentListener("\($0)-0.sock", in: fixture.runDirectory) }
    let session = try await vault.openSession(for: .seconds(60))
    #expect(session.processIDs == [getpid()])
    #expect(session.problems.count == silent.count)
    listener.close()
  }

  @Test func `stale sockets and files that are not sockets hide no process`() async throws {
    let vault = try await fixture.makeVault()
    let listener = try fixture.listen()
    for index in 0..<70 {
      _ = try SilentListener("0\(index)-0.sock", in: fixture.runDirectory)
      try Data().write(
        to: URL(fileURLWithPath: fixture.runDirectory.appending("0\(index).sock").string))
    }
    #expect(try await vault.openSession(for: .seconds(60)).processIDs.count == 1)
    listener.close()
  }

  // MARK: Order

  /// Blocks the first caller of a clock until the test lets it go.
  private final class Gate: Sendable {
    private let isClosed = Mutex(true)
    private let entered = DispatchSemaphore(value: 0)
    private let opened = DispatchSemaphore(value: 0)

    func pass() {
      let mustWait = isClosed.withLock { isClosed in
        defer { isClosed = false }
        return isClosed
      }
      guard mustWait else { return }
      entered.signal()
      opened.wait()
    }

    func waitForCaller() { entered.wait() }
    func open() { opened.signal() }
  }

  /// A listener that stops at the gate when it has read the first `open` request.
  private func listen(_ gate: Gate) throws -> SessionListener {
    var parameters = fixture.service
    let time = fixture.time
    parameters.sinceBoot = {
      gate.pass()
      return time.sinceBoot
    }
    return try fixture.listen(parameters)
  }

  @Test func `a process does not take a session whose sender has stopped waiting`() async throws {
    _ = try await fixture.makeVault()
    let key = try await fixture.contentKey()
    let gate = Gate()
    let listener = try listen(gate)
    var client = Optional(try RawClient(fixture.socketPath()))
    client?.send(fixture.opening(key: key, deadline: fixture.time.sinceBoot + .seconds(9)))
    client?.endSending()
    gate.waitForCaller()
    client = nil
    gate.open()
    try await eventually { !fixture.log.isEmpty }
    #expect(fixture.log.first?.contains("stopped waiting") == true)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    listener.close()
  }

  @Test func `a process carries out a lock after the unlock that came before it`() async throws {
    _ = try await fixture.makeVault()
    let key = try await fixture.contentKey()
    let gate = Gate()
    let listener = try listen(gate)
    let client = try RawClient(fixture.socketPath())
    client.send(fixture.opening(key: key, deadline: fixture.time.sinceBoot + .seconds(9)))
    client.endSending()
    gate.waitForCaller()
    async let hasLocked = fixture.lock()
    // Nothing shows that the lock waits for its turn: a process without order carries it out in this time.
    try await Task.sleep(for: .milliseconds(300))
    gate.open()
    #expect(client.reply()?[4] == 0)
    #expect(try await hasLocked)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    listener.close()
  }

  @Test func `a process refuses an unlock that is whole only after a later lock`() async throws {
    _ = try await fixture.makeVault()
    let key = try await fixture.contentKey()
    let listener = try fixture.listen()
    let request = fixture.opening(key: key, deadline: fixture.time.sinceBoot + .seconds(9))
    let client = try RawClient(fixture.socketPath())
    client.send(Array(request.dropLast()))
    #expect(try await !fixture.lock())
    client.send([try #require(request.last)])
    client.endSending()
    #expect(client.reply()?[4] == 6)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    #expect(fixture.log.contains { $0.contains("a later lock or unlock was faster") })
    listener.close()
  }

  @Test func `a lock after the kernel has the session ends it, although the unlock is slower`()
    async throws
  {
    _ = try await fixture.makeVault()
    let listener = try fixture.listen()
    var command = fixture.command
    let keyring = ManualKeyring(time: fixture.time)
    command.sessionKeyring = keyring
    let vault = try await Vault.get(.messaging, in: fixture.home.store, parameters: command)
    try await vault.unlock(with: credentials("secret"))
    let path = try fixture.socketPath()
    keyring.beforeStoring = {
      let client = try? RawClient(path)
      client?.send(Array("DVS1".utf8) + [3, 9] + Array("messaging".utf8))
      client?.endSending()
      #expect(client?.reply()?[4] == 1)
    }
    let session = try await vault.openSession(for: .seconds(60))
    #expect(session.isInKernel)
    #expect(session.processIDs.isEmpty)
    #expect(try await fixture.processes().map(\.sessionRemaining) == [nil])
    listener.close()
  }

  @Test func `a lock directly after an unlock closes what an expired session has opened`()
    async throws
  {
    let owner = try await fixture.makeVault()
    let listener = try fixture.listen()
    try await owner.openSession(for: .seconds(10))
    let vault = try await fixture.serviceVault()
    #expect(try await vault.unlockWithSession())
    let closings = Mutex(0)
    let dependent = vault.addDependent { closings.withLock { $0 += 1 } }
    fixture.time.advance(by: .seconds(10))
    try await eventually { !vault.endsWithSession }
    try await owner.openSession(for: .seconds(60))
    #expect(try await fixture.lock())
    try await eventually { closings.withLock { $0 } == 1 }
    #expect(vault.isLockedFromOutside)
    withExtendedLifetime(dependent) {}
    listener.close()
  }

  // MARK: The log and warnings

  @Test func `a connection without a byte is no event`() async throws {
    let first = try fixture.listen()
    let client = try RawClient(fixture.socketPath())
    client.endSending()
    #expect(client.reply() == nil)
    first.close()
    #expect(fixture.log.isEmpty)
  }

  @Test func `unlock warns of a directory that others can use, where the kernel has the session`()
    async throws
  {
    _ = try await fixture.makeVault()
    mkdir(fixture.runDirectory.string, 0o700)
    chmod(fixture.runDirectory.string, 0o755)
    let session = try await openInKernel(for: .seconds(60))
    #expect(session.isInKernel)
    #expect(session.problems.count == 1)
    #expect(session.problems.first?.contains("other users can use") == true)
  }
}

/// A process that is stopped: the kernel takes connections for it, and it does not answer.
private final class SilentListener {
  private let descriptor: Int32

  init(_ name: String, in directory: FilePath) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = directory.appending(name).string
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let result = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0 && Glibc.listen(descriptor, 16) == 0)
  }

  deinit { close(descriptor) }
}
