internal import ApplicationStore
internal import CommandInterface
internal import DataVault
internal import FileLayer
internal import JetStreamLog
internal import Logging
internal import MessagingQueue
internal import MessagingServer
internal import QueueReplication
internal import Replication
internal import SystemPackage
internal import VaultedDatabase

/// What the commands on a cluster share.
extension VaultAccess {
  /// Runs `body` on the engine and the vault of a home, and always stops the engine.
  ///
  /// - Parameters:
  ///   - makesHome: whether a first use makes the vault and the database.
  ///   - excludesServer: whether no server can run on the home during the call. One that has started before would go on
  ///     publishing beside the log.
  func runMember<Result>(
    makesHome: Bool = false, excludesServer: Bool = false,
    _ body: (MessagingEngine, Vault, DataVaultHome) async throws -> Result
  ) async throws -> Result {
    let home = try home()
    let lock = excludesServer ? try await ServerLock.take(of: home) : nil
    defer { lock?.release() }
    return try await runEngine(makesHome: makesHome) { engine, vault in
      do {
        return try await body(engine, vault, home)
      } catch let error as JoinError {
        throw CommandFailure(.badData, error.reason)
      } catch let error as KeyRingError {
        throw CommandFailure(.badData, error.reason)
      } catch let error as NodeKeysError {
        throw CommandFailure(.badData, error.reason)
      }
    }
  }

  /// Reads a file that a command names.
  func contents(of path: String, _ argument: String, most: Int) throws -> [UInt8] {
    let path = try FilePath.absolute(path, argument)
    guard let bytes = try LinuxFileSystem().read(path, maximumByteCount: most) else {
      throw CommandFailure(.notFound, "there is no file \(path)")
    }
    return bytes
  }

  /// A fingerprint as an operator has entered it.
  func fingerprint(_ text: String) throws -> Fingerprint {
    guard let fingerprint = Fingerprint(text) else {
      throw CommandFailure(
        .usage, "--fingerprint has not the 25 letters and digits of a fingerprint",
        hint: "enter what the other node has shown")
    }
    return fingerprint
  }
}

/// How this program reaches the brokers of a cluster.
enum ClusterBrokers {
  static let clock: @Sendable () -> Duration = { SystemTimeSource.sinceBoot }

  /// The log of a shard; it connects when it is first used.
  static func log(
    _ cluster: borrowing NodeVault.Cluster, _ keys: borrowing NodeKeys, _ logger: Logger
  ) throws -> JetStreamLog {
    let settings = BrokerSettings(
      addresses: cluster.settings.addresses, authority: cluster.settings.authority)
    if cluster.settings.logsIn {
      return try JetStreamLog(
        settings, ring: cluster.ring, user: keys.userKey(), now: clock, logger: logger)
    }
    return try JetStreamLog(settings, ring: cluster.ring, user: nil, now: clock, logger: logger)
  }

  /// The log of the shard whose secrets a vault has.
  static func log(of vault: Vault, _ logger: Logger) async throws -> JetStreamLog {
    let secrets = NodeVault(vault)
    let cluster = try await secrets.cluster()
    let keys = try await secrets.keys()
    return try log(cluster, keys, logger)
  }

  /// Brings the log of a cluster into a member's home, for a server.
  static func replicate(
    _ home: DataVaultHome, _ engine: MessagingEngine, _ vault: Vault, logger: Logger
  ) async throws -> @Sendable () async throws -> Void {
    let member = try await node(home, engine, vault, logger: logger)
    return { try await member.run() }
  }

  /// The node of a member's home.
  static func node(
    _ home: DataVaultHome, _ engine: MessagingEngine, _ vault: Vault, logger: Logger
  ) async throws -> MemberNode {
    var configuration = NodeConfiguration()
    configuration.serverTables = ApplicationStore.replicatedTables
    // That of the server's workers: no other process of the home leases.
    configuration.ownership.longestLease = .seconds(30)
    configuration.logger = logger
    return try await MemberNode.start(
      engine, of: home, vault: vault, configuration: configuration, time: SystemTimeSource()
    ) { cluster, keys in
      let log = try log(cluster, keys, logger)
      return MemberNode.Connection(log: log, members: log, close: { log.close() })
    }
  }
}
