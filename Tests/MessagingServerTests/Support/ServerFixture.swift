import AccessControl
import ApplicationStore
import DataVault
import DataVaultTesting
import Foundation
import Logging
import MessagingQueue
import MessagingQueueLifecycle
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing
import VaultCrypto
import VaultedDatabase

@testable import MessagingServer

/// A server in this process, on a port that the system has chosen, with an open application `shop` and a closed one.
final class ServerFixture: Sendable {
  /// The keys of an application, as a client is given them.
  struct Keys: Sendable {
    let record: ApplicationRecord
    let secretKey: String

    var publish: String { record.publishKey }
    var subscribe: String { record.subscribeKey }
  }

  let url: String
  /// Where STOMP is spoken, if it is.
  let stompURL: String?
  let open: Keys
  let closed: Keys
  let engine: MessagingEngine
  /// The tables, as another process changes them.
  let store: ApplicationStore
  let server: MessagingServer
  /// The messaging vault.
  let vault: Vault

  /// Runs `body` beside a server, and stops the server.
  ///
  /// - Parameters:
  ///   - prepare: gets the home before the server starts.
  ///   - addsApplications: otherwise another server of the cluster has added them.
  static func run(
    _ configure: (inout ServerConfiguration) -> Void = { _ in },
    preparing prepare: (DataVaultHome, Vault) async throws -> Void = { _, _ in },
    addsApplications: Bool = true,
    _ body: @escaping @Sendable (ServerFixture) async throws -> Void
  ) async throws {
    let scratch = ScratchFolder()
    let vaults = InMemoryVaultStore()
    let home = DataVaultHome(scratch.path, store: vaults, vaultParameters: .cheap)
    let vault = try await FastTestVault.create(
      .messaging, in: vaults, credentials: credentials("secret"))
    try await prepare(home, vault)
    var configuration = ServerConfiguration([.init(ListenAddress("127.0.0.1:0")!)])
    configuration.logger = Logger(label: "server") { _ in SwiftLogNoOpLogHandler() }
    configuration.engine.logger = configuration.logger
    configuration.operations = ServerOperations(logger: configuration.logger)
    configure(&configuration)
    let speaksSTOMP = !configuration.stompListening.isEmpty
    let messages = MessagingService(home, vault: vault, configuration: configuration.engine)
    let urls = AsyncStream.makeStream(of: String.self)
    let server = MessagingServer(
      home, vault: vault, messages: messages, configuration: configuration,
      didListen: { urls.continuation.yield($0) })
    let group = ServiceGroup(services: [messages, server], logger: configuration.logger)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { try await group.run() }
      tasks.addTask {
        let engine = try await messages.engine()
        let store = try await ApplicationStore.open(engine, vault: vault)
        var iterator = urls.stream.makeAsyncIterator()
        let fixture = ServerFixture(
          url: await iterator.next() ?? "",
          stompURL: speaksSTOMP ? await iterator.next() : nil,
          open: try await keys("shop", isOpen: true, isNew: addsApplications, store),
          closed: try await keys("closed", isOpen: false, isNew: addsApplications, store),
          engine: engine,
          store: store, server: server, vault: vault)
        try await eventually { server.knows(fixture.closed.subscribe) }
        try await body(fixture)
        await group.triggerGracefulShutdown()
      }
      // The first error ends the other task too.
      for try await _ in tasks {}
    }
  }

  private init(
    url: String, stompURL: String?, open: Keys, closed: Keys, engine: MessagingEngine,
    store: ApplicationStore, server: MessagingServer, vault: Vault
  ) {
    self.url = url
    self.stompURL = stompURL
    self.open = open
    self.closed = closed
    self.engine = engine
    self.store = store
    self.server = server
    self.vault = vault
  }

  /// `HOST:PORT`, which SDKs call the origin.
  var origin: String { String(url.drop { $0 != "/" }.dropFirst(2)) }

  private static func keys(
    _ name: String, isOpen: Bool, isNew: Bool, _ store: ApplicationStore
  ) async throws -> Keys {
    if isNew { return try await keys(of: store.addApplication(name, isOpen: isOpen), store) }
    try await eventually { try await store.applications().contains { $0.name == name } }
    return try await keys(of: store.application(named: name), store)
  }

  private static func keys(
    of record: ApplicationRecord, _ store: ApplicationStore
  ) async throws -> Keys {
    let secret = try await store.secretKey(of: record.id)
    let text = unsafe secret.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    return Keys(record: record, secretKey: text)
  }

  /// Makes the server read the changes of its tables now.
  func refresh() async throws { _ = try await server.gate.home?.refresh() }

  /// Opens an application to everyone, and waits until the server knows it.
  func open(_ keys: Keys) async throws {
    try await store.setOpen(true, of: keys.record.id)
    try await eventually {
      try await get("/v2/history/sub-key/\(keys.subscribe)/channel/c").status == 200
    }
  }

  /// Waits until so many subscribers wait for events.
  func waitForPolls(_ count: Int) async throws {
    try await eventually("\(count) polls, not \(server.openPollCount)") {
      server.openPollCount == count
    }
  }

  /// Waits until so many connections are open.
  func waitForConnections(_ count: Int) async throws {
    try await eventually("\(count) connections, not \(server.connections.count)") {
      server.connections.count == count
    }
  }

  /// A connection that never reads, with little room for what it is sent.
  ///
  /// - Parameter origin: default: that of HTTP.
  func connectWithoutReading(to origin: String? = nil) async throws -> any NIOCore.Channel {
    let port = try #require((origin ?? self.origin).split(separator: ":").last.flatMap { Int($0) })
    return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.autoRead, value: false)
      .channelOption(.socketOption(.so_rcvbuf), value: 4096)
      .connect(host: "127.0.0.1", port: port).get()
  }

  /// The place of a subscriber's answer, with its 17 digits.
  static func place(in answer: String) -> Substring? {
    answer.firstMatch(of: /^{"t":{"t":"(\d{17})"/)?.output.1
  }

  /// The answer to a GET.
  func get(_ target: String) async throws -> HTTPRequester.Answer {
    try await send("GET", target)
  }

  /// The answer to a request.
  func send(
    _ method: String, _ target: String, body: [UInt8] = [],
    headers: [(name: String, value: String)] = []
  ) async throws -> HTTPRequester.Answer {
    try await HTTPRequester.send(method, target, to: origin, headers: headers, body: body)
  }
}
