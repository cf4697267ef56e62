package import DataVault
package import FileLayer
internal import GRDB
internal import Glibc
package import MessagingQueue
package import Replication
internal import SystemPackage
internal import VaultCrypto
package import VaultedDatabase

/// The node of a home, with what belongs to it: the home's lock and the connection to the brokers.
package final class MemberNode: Sendable {
  /// A way to the brokers of a shard.
  package struct Connection: Sendable {
    package let log: any ReplicatedLog
    package let members: any MemberExchange
    /// Ends the connection.
    package let close: @Sendable () -> Void

    package init(
      log: any ReplicatedLog, members: any MemberExchange, close: @escaping @Sendable () -> Void
    ) {
      self.log = log
      self.members = members
      self.close = close
    }
  }

  package let node: ReplicaNode
  private let connection: Connection
  private let locks: [FileLock]

  private init(_ node: ReplicaNode, _ connection: Connection, _ locks: [FileLock]) {
    self.node = node
    self.connection = connection
    self.locks = locks
  }

  /// Connects the home of a member, and lets its engine's changes go through the log.
  ///
  /// - Parameters:
  ///   - vault: the messaging vault of the home, unlocked.
  ///   - configuration: its interval of syncs is that of the settings.
  ///   - connect: connects to the brokers.
  /// - Throws: ``ReplicationError`` unless the home is this vault's member, if it was salvaged, or if another process
  ///   replicates it; the errors of `connect`, the vault and the engine.
  package static func start(
    _ engine: MessagingEngine, of home: DataVaultHome, vault: Vault,
    configuration: NodeConfiguration, time: any TimeSource,
    connect: (borrowing NodeVault.Cluster, borrowing NodeKeys) async throws -> Connection
  ) async throws -> MemberNode {
    let secrets = NodeVault(vault)
    let keys = try await secrets.keys()
    let (member, isSalvaged) = try await engine.access.read(during: "reading the member") { db in
      (try ReplicationSchema.member(db), try db.tableExists(MessageRepairer.memberMark))
    }
    guard let member else { throw ReplicationError.noMember }
    guard !isSalvaged else { throw ReplicationError.salvaged }
    guard try keys.member() == member else {
      throw ReplicationError(
        .state, "the database is of another member than the vault's keys",
        hint: "restore the vault and the database from the same backup, or join again")
    }
    var locks = [try await takeLock(lockPath(of: home), of: home)]
    var connection: Connection?
    do {
      // What the log has dropped where no broker forgets it is needed by none.
      try await secrets.removeKeys(
        before: engine.access.read(during: "reading the keys") { db in
          try StoredState.load(db, now: .zero).safeValues.oldestKey
        })
      let cluster = try await secrets.cluster()
      var configuration = configuration
      configuration.syncInterval = .seconds(cluster.settings.syncSeconds)
      let connected = try await connect(cluster, keys)
      connection = connected
      let node = try await ReplicaNode.start(
        engine, member: member, ring: cluster.ring, log: connected.log,
        members: connected.members, time: time, configuration: configuration)
      locks.append(try await takeLock(readyPath(of: home), of: home))
      return MemberNode(node, connected, locks)
    } catch {
      connection?.close()
      for lock in locks { lock.release() }
      throw error
    }
  }

  /// Works until the task is cancelled or the node must stop, then closes the connection.
  package func run() async throws {
    defer {
      connection.close()
      for lock in locks { lock.release() }
    }
    try await node.run()
  }

  /// Makes a home the only one: it applies what is still in its outbox, and keeps all messages.
  ///
  /// Other members must have been told by ``ReplicaNode/leave(within:)``, or be gone. On a home that is no member it
  /// removes the secrets that an interrupted call has left in the vault.
  ///
  /// - Parameter engine: of the home, without a running node. Start another one afterwards.
  package static func leaveAlone(
    _ engine: MessagingEngine, of home: DataVaultHome, vault: Vault, serverTables: Set<String>
  ) async throws {
    let secrets = NodeVault(vault)
    let lock = try await takeLock(lockPath(of: home), of: home)
    defer { lock.release() }
    guard try await engine.access.read(during: "reading the member", ReplicationSchema.isMade)
    else { return try await secrets.clear() }
    let cluster = try await secrets.cluster()
    let database = ShardDatabase(
      engine, member: try await secrets.keys().member(),
      ring: RingSeal(cluster.ring, random: .unshared()),
      newestKey: cluster.ring.keyNumbers.upperBound, syncInterval: .zero,
      serverTables: serverTables, now: { .zero })
    do {
      try await database.leaveAlone()
    } catch let error as EngineError {
      // It went through a transaction.
      throw error.underlying as? ReplicationError ?? error
    }
    try await secrets.clear()
  }

  /// Whether a process replicates a home, and has drawn its authors: what is written before that would have those of an
  /// earlier process.
  static func isRunning(on home: DataVaultHome) -> Bool {
    let path = readyPath(of: home)
    do {
      // A lock file that this makes could be root's, and lock the server out.
      guard try home.fileSystem.status(of: path) != nil else { return false }
      // A server keeps it, and another command that looks has it for a moment. Who takes it waits so long.
      for _ in 0..<3 {
        if let lock = try home.fileSystem.lock(path, wait: false) {
          lock.release()
          return false
        }
        usleep(2_000)
      }
      return true
    } catch {
      // A command that cannot know it must write nothing.
      return false
    }
  }

  private static func lockPath(of home: DataVaultHome) -> FilePath {
    FilePath(home.databasePath.string + "-replica")
  }

  private static func readyPath(of home: DataVaultHome) -> FilePath {
    FilePath(lockPath(of: home).string + "-ready")
  }

  /// One process replicates a home: each draws authors of its own, and applies all records.
  private static func takeLock(_ path: FilePath, of home: DataVaultHome) async throws -> FileLock {
    let lock = try await onBlockingThread("datavault.replica-lock") {
      try home.fileSystem.makeLockFile(path)
      return try home.fileSystem.lock(path, busyTimeout: .milliseconds(100))
    }
    guard let lock else {
      throw ReplicationError(
        .state, "another process replicates \(home.path)", hint: "stop datavaultd serve first")
    }
    return lock
  }
}
