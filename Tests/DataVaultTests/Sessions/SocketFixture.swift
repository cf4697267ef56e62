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

/// A service that listens in a home, and a command, as two processes for which the kernel refuses keys.
final class SocketFixture: Sendable {
  let home: TemporaryHome
  let time = ManualTimeSource()
  let service: VaultParameters
  let serviceKeyring: ManualKeyring
  let command: VaultParameters
  private let lines = Mutex<[String]>([])

  init(in base: String = "/tmp") {
    home = TemporaryHome(in: base)
    let time = time
    func process() -> (VaultParameters, ManualKeyring) {
      var parameters = VaultParameters.cheap
      let keyring = ManualKeyring(time: time)
      keyring.refusal = EPERM
      parameters.sessionKeyring = keyring
      parameters.processKeyring = ProcessKeyring { time.sinceBoot }
      parameters.socketTimeLimit = .seconds(600)
      parameters.sinceBoot = { time.sinceBoot }
      parameters.now = { time.now }
      return (parameters, keyring)
    }
    (service, serviceKeyring) = process()
    command = process().0
  }

  var runDirectory: FilePath { home.path.appending("run") }

  /// The lines that the listeners have logged.
  var log: [String] { lines.withLock { $0 } }

  func makeVault(_ credentials: borrowing Credentials = credentials("secret")) async throws -> Vault
  {
    try await Vault.create(
      .messaging, in: home.store, credentials: credentials, parameters: command)
  }

  func listen(timeLimit: Duration? = nil) throws -> SessionListener {
    var parameters = service
    if let timeLimit { parameters.socketTimeLimit = timeLimit }
    return try listen(parameters)
  }

  func listen(_ parameters: VaultParameters) throws -> SessionListener {
    let listener = try SessionListener(for: home.store, parameters: parameters) {
      [weak self] event in self?.lines.withLock { $0.append(event.message) }
    }
    return try #require(listener)
  }

  /// The vault as the service opens it: locked.
  func serviceVault() async throws -> Vault {
    try await Vault.get(.messaging, in: home.store, parameters: service)
  }

  func processes() async throws -> [SessionProcess] {
    try await SessionProcess.survey(.messaging, in: home.store, parameters: command).processes
  }

  func problems() async throws -> [String] {
    try await SessionProcess.survey(.messaging, in: home.store, parameters: command).problems
  }

  func lock() async throws -> Bool {
    try await VaultSession.end(.messaging, in: home.store, parameters: command).count > 0
  }

  func lockAll() async throws -> Int {
    try await VaultSession.end(nil, in: home.store, parameters: command).count
  }

  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: runDirectory.string).sorted()
  }

  /// The path of the only socket.
  func socketPath() throws -> String {
    try runDirectory.appending(#require(names().first { $0.hasSuffix(".sock") })).string
  }

  /// Sends bytes to the only socket, and returns the reply; nil for a connection that was closed without one.
  func send(_ bytes: [UInt8]) throws -> [UInt8]? {
    let client = try RawClient(socketPath())
    client.send(bytes)
    client.endSending()
    return client.reply()
  }

  /// The key with which a session opens the vault; call it before a process listens.
  func contentKey() async throws -> [UInt8] {
    let keyring = ManualKeyring(time: time)
    var parameters = command
    parameters.sessionKeyring = keyring
    let found = try await Vault.get(.messaging, in: home.store, parameters: parameters)
    try await found.unlock(with: credentials("secret"))
    try await found.openSession(for: .seconds(1))
    return Array(try #require(keyring.entries.first).bytes.suffix(32))
  }

  /// An `open` request for `messaging`, from the specification.
  func opening(key: [UInt8], deadline: Duration) -> [UInt8] {
    let nanoseconds = UInt64(deadline / .nanoseconds(1))
    return Array("DVS1".utf8) + [2, 9] + Array("messaging".utf8) + [1]
      + (0..<8).map { UInt8(truncatingIfNeeded: nanoseconds >> (8 * $0)) } + key
  }
}

/// A client that can break every rule.
final class RawClient {
  let descriptor: Int32

  init(_ path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    let result = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(result == 0)
  }

  deinit { close(descriptor) }

  func send(_ bytes: [UInt8]) {
    _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// All bytes up to the end of the connection; nil for none.
  func reply() -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 200)
    var byteCount = 0
    while true {
      let count = bytes.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress! + byteCount, $0.count - byteCount, 0)
      }
      if count <= 0 { return byteCount == 0 ? nil : Array(bytes.prefix(byteCount)) }
      byteCount += count
    }
  }
}
