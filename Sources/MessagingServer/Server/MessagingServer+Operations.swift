internal import FileLayer
internal import NIOCore
internal import SystemPackage
internal import VaultedDatabase

extension MessagingServer {
  /// The most connections to health and metrics: those of the clients do not count, so that a flood of them hides
  /// nothing.
  private static let maximumConnectionCount = 100

  /// Listens for who asks for health and metrics; nil if no address is configured.
  ///
  /// - Throws: ``ServerError`` if other machines reach the address, and the configuration does not say so by name.
  func listenForOperations(_ group: any EventLoopGroup) async throws -> Listener? {
    guard let listening = configuration.operationsListening else { return nil }
    let service = OperationsService(
      operations: configuration.operations, connections: connections, gate: gate)
    let listener = try await Listener.start(
      at: listening.address, on: group,
      Listener.Configuration(
        connections: ConnectionSet(maximumCount: Self.maximumConnectionCount),
        identity: listening.identity,
        spoken: .http(configuration.limits, configuration.operations) { service.answer($0) }))
    guard listener.isLocal || configuration.allowsRemoteOperations else {
      await listener.close()
      throw ServerError(
        .exposed, "the metrics on \(listening.address) can be reached from other machines",
        hint: "listen on 127.0.0.1 or a Unix socket, or give --allow-remote-operations")
    }
    try await listener.accept()
    didListen(listener.url + Route.metrics.rawValue)
    return listener
  }

  /// Does the work of the server while the service manager is told that it works, and the disk is looked at.
  func whileReporting(
    _ group: any EventLoopGroup, _ body: () async throws -> Void
  ) async throws {
    let operations = configuration.operations
    let directory = home.databasePath.containingDirectory
    await operations.disk.look(in: directory)
    let reports = [
      Task { await operations.disk.run(in: directory) },
      Task {
        if let watchdog = operations.watchdog {
          await watchdog.run(on: group, notify: operations.notify)
        }
      },
    ]
    defer { for report in reports { report.cancel() } }
    try await body()
  }
}
