internal import ApplicationStore
package import DataVault
internal import FileLayer
internal import Foundation
internal import Logging
internal import MessagingQueue
package import MessagingQueueLifecycle
internal import NIOCore
internal import NIOPosix
internal import Realtime
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage
package import VaultedDatabase

/// The message server: listens for stock clients, and serves them while the messaging vault is open.
///
/// It starts and listens while the vault is locked. List it behind its `MessagingService` in a group, so that requests
/// under way end before the engine stops.
package final class MessagingServer: Service {
  let home: DataVaultHome
  private let vault: Vault
  private let messages: MessagingService
  let configuration: ServerConfiguration
  /// Called once for each address with the URL on which it listens.
  let didListen: @Sendable (String) -> Void
  let gate = HomeGate()
  let connections: ConnectionSet
  /// How long a stop waits for requests that are on their way.
  private static let idleTime = Duration.milliseconds(500)
  private let listeners = Mutex<[Listener]>([])
  private var operations: ServerOperations { configuration.operations }

  /// - Parameters:
  ///   - vault: the messaging vault of the home, the same as that of `messages`.
  package init(
    _ home: DataVaultHome, vault: Vault, messages: MessagingService,
    configuration: ServerConfiguration, didListen: @escaping @Sendable (String) -> Void
  ) {
    self.home = home
    self.vault = vault
    self.messages = messages
    self.configuration = configuration
    self.didListen = didListen
    let operations = configuration.operations
    connections = ConnectionSet(
      maximumCount: configuration.maximumConnectionCount,
      maximumCountPerAddress: configuration.maximumConnectionCountPerAddress,
      memory: MemoryLedger(
        limitByteCount: configuration.memoryByteCount ?? MemoryLedger.defaultLimitByteCount
      ) { operations.metrics?.count(.memory) })
  }

  /// How many subscribers wait for events.
  package var openPollCount: Int { gate.openHome?.polls.count ?? 0 }

  /// How many clients of Pusher's protocol are connected.
  var pusherConnectionCount: Int { gate.openHome?.pusherSessions.count ?? 0 }

  /// Whether the server knows the application with a subscribe key.
  package func knows(_ subscribeKey: String) -> Bool {
    gate.openHome?.directory.application(subscribeKey: subscribeKey) != nil
  }

  /// Serves until a graceful shutdown or a cancellation.
  ///
  /// - Throws: ``ServerError`` if it cannot listen, or another server runs on the home; the error of an engine that
  ///   cannot start.
  package func run() async throws {
    let lock = try await ServerLock.take(of: home)
    defer { lock.release() }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: System.coreCount)
    do {
      let operationsListener = try await listenForOperations(group)
      try await whileReporting(group) {
        try await cancelWhenGracefulShutdown {
          try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await self.serve(on: group) }
            tasks.addTask {
              // So a client of a server that needs no unlock meets none that is still locked.
              if try await !self.isSealed() { await self.gate.waitForFirstOpening() }
              if Task.isCancelled { return }
              try await self.listen(group)
              self.operations.didStart()
            }
            for try await _ in tasks {}
          }
        }
        await stop()
      }
      await operationsListener?.close()
      try await group.shutdownGracefully()
    } catch {
      operations.willStop(error)
      try? await group.shutdownGracefully()
      throw error
    }
  }

  /// Whether the vault needs an unlock before the engine can start.
  private func isSealed() async throws -> Bool {
    guard await vault.isLocked, try await vault.status().isSecured else { return false }
    return try await home.liveSession(of: .messaging) == nil
  }

  private func listen(_ group: any EventLoopGroup) async throws {
    let pubNub = PubNubService(
      gate, operations, holdTime: configuration.holdTime, now: configuration.now)
    let pusher = PusherService(gate, uptime: configuration.uptime)
    let stomp = STOMPService(gate, operations, origins: configuration.stompOrigins)
    let health = OperationsService(operations: operations, connections: connections, gate: gate)
    let http = ListenerProtocol.http(configuration.limits, operations) {
      if !health.answersHealth($0), !stomp.answers($0), !pusher.answers($0) { pubNub.answer($0) }
    }
    let isSecured = try await vault.status().isSecured
    for (listening, spoken) in configuration.listening.map({ ($0, http) })
      + configuration.stompListening.map({ ($0, .stream("stomp", stomp.makeSession)) })
    {
      let listener = try await Listener.start(
        at: listening.address, on: group,
        Listener.Configuration(
          connections: connections, identity: listening.identity, spoken: spoken))
      listeners.withLock { $0.append(listener) }
      try requirePermission(for: listener, listening, isSecured: isSecured)
    }
    for listener in listeners.withLock({ $0 }) {
      try await listener.accept()
      didListen(listener.url)
    }
  }

  /// Refuses to expose what an operator has not said by name.
  private func requirePermission(
    for listener: Listener, _ listening: ServerConfiguration.Listening, isSecured: Bool
  ) throws(ServerError) {
    if listener.isLocal { return }
    if !isSecured, !configuration.allowsUnsecured {
      throw ServerError(
        .exposed,
        "the messages in \(home.path) open with the publicly known password, and \(listening.address) can be reached from other machines",
        hint: "run datavault secure, listen on 127.0.0.1, or give --allow-unsecured")
    }
    if listening.identity == nil, !configuration.allowsPlainHTTP {
      throw ServerError(
        .exposed, "\(listening.address) can be reached from other machines, without TLS",
        hint:
          "give --tls-certificate and --tls-key, listen on 127.0.0.1, or give --allow-plain-http")
    }
  }

  /// Opens the gate whenever an engine runs.
  private func serve(on group: any EventLoopGroup) async throws {
    while !Task.isCancelled {
      let engine: MessagingEngine
      do throws(EngineError) {
        engine = try await messages.engine()
      } catch {
        if [.cancelled, .stopped].contains(error.code) { return }
        throw error
      }
      do {
        try await serve(engine, on: group)
      } catch {
        // Whatever failed first: without an engine, the cause is a lock or a stop. An operation learns of a lock before
        // the engine's state does.
        guard engine.refusal() != nil else { throw error }
        _ = await engine.states.first { $0 != .running }
        configuration.logger.notice("the vault was locked: waiting for datavault unlock")
      }
    }
  }

  private func serve(
    _ engine: MessagingEngine, on group: any EventLoopGroup
  ) async throws {
    guard engine.isReplicated else { return try await open(engine, on: group) }
    guard let replicate = configuration.replicate else {
      _ = try engine.replica()
      return try await open(engine, on: group)
    }
    let replication = try await replicate(engine, vault)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      tasks.addTask { try await replication() }
      tasks.addTask { try await self.open(engine, on: group) }
      defer { tasks.cancelAll() }
      try await tasks.next()
    }
  }

  private func open(
    _ engine: MessagingEngine, on group: any EventLoopGroup
  ) async throws {
    let store = try await ApplicationStore.open(engine, vault: vault)
    let directory = try await ApplicationDirectory.load(store)
    let realtime = try await Realtime(engine)
    let logins = LoginGate(
      store.keys.realm, failures: try await store.loginFailures(), now: configuration.now)
    let open = OpenHome(
      engine: engine, realtime: realtime, store: store, directory: directory, logins: logins,
      operations: operations, webhooks: WebhookClient(configuration.webhooks, on: group),
      now: configuration.now)
    operations.didUnseal()
    gate.open(open)
    defer {
      gate.close()
      // A stop cancels this task.
      if !Task.isCancelled { operations.didSeal() }
      open.close(isStopping: Task.isCancelled)
    }
    configuration.logger.notice("serving \(home.path)")
    let following = Task { if engine.isReplicated { await gate.followCluster(of: open) } }
    defer { following.cancel() }
    try await open.run()
  }

  /// Ends what waits, waits for what works, and closes.
  private func stop() async {
    operations.willStop()
    for listener in listeners.withLock({ $0 }) { await listener.close() }
    connections.drain()
    gate.releaseHeld()
    let start = ContinuousClock.now
    await waitForRequests(until: start + min(Self.idleTime, configuration.stopTime))
    connections.endIdle()
    await waitForRequests(until: start + configuration.stopTime)
    connections.closeAll()
  }

  /// Waits for the connections, and for publications whose clients have left: their tasks need the event loops.
  private func waitForRequests(until deadline: ContinuousClock.Instant) async {
    while connections.count > 0 || operations.admission.operationCount > 0, .now < deadline {
      try? await Task.sleep(for: .milliseconds(20))
    }
  }
}
