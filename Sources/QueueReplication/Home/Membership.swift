package import DataVault
internal import FileLayer
internal import GRDB
package import MessagingQueue
package import Replication
package import SystemPackage
internal import VaultCrypto
package import VaultedDatabase

/// How a home becomes a member of a shard: as the first one, or by an invitation of another.
package enum Membership {
  /// The secrets and settings of a new shard; those that an interrupted call has left are used again.
  ///
  /// - Throws: ``ReplicationError`` if the home is a member already; the errors of the vault and the engine.
  package static func prepareFirst(
    _ engine: MessagingEngine, vault: Vault, settings: ClusterSettings
  ) async throws -> NodeVault.Cluster {
    guard !engine.isReplicated else {
      throw ReplicationError(
        .state, "this home is a member already", hint: "datavaultd cluster status shows it")
    }
    let secrets = NodeVault(vault)
    do {
      let cluster = try await secrets.cluster()
      try await secrets.store(settings)
      return NodeVault.Cluster(ring: cluster.ring.copy(), settings: settings)
    } catch let error as ReplicationError where error.code == .state {
      let ring = KeyRing(newShard: .system)
      try await secrets.store(ring, settings)
      return NodeVault.Cluster(ring: ring, settings: settings)
    }
  }

  /// Makes the home the first member: its messages stay, and all later members get them.
  ///
  /// Call it when the stream exists. Start another engine afterwards.
  package static func makeFirst(
    _ engine: MessagingEngine, vault: Vault, shard: ShardID
  ) async throws {
    let member = try await NodeVault(vault).keys().member()
    try await engine.write { db in
      try ReplicationSchema.make(shard: shard, member: member, db)
    }
  }

  /// Makes the node of a request a member, and a copy of the database for it.
  ///
  /// It waits until no broker can forget the new member: at least the interval of their syncs. The server of the home
  /// runs at the same time.
  ///
  /// - Parameters:
  ///   - request: the file.
  ///   - confirmed: the fingerprint that the node of the request has shown.
  ///   - writer: of the home.
  ///   - path: of the copy, which must be free.
  ///   - item: the vault's item that all members share, with the key of the applications' tables.
  /// - Throws: the errors of the vault, the engine and the disk. The node can be a member then: invite it again.
  package static func invite(
    _ request: [UInt8], confirmed: Fingerprint, by writer: OutboxWriter, of home: DataVaultHome,
    vault: Vault,
    sharing item: String, copyingTo path: FilePath
  ) async throws -> Invitation {
    let request = try JoinRequest(parsing: request)
    guard try request.fingerprint() == confirmed else { throw JoinError.otherRequestFingerprint }
    let secrets = NodeVault(vault)
    let cluster = try await secrets.cluster()
    try await writer.addMember(
      request.member, within: .seconds(cluster.settings.syncSeconds) + .seconds(60))
    try await DatabaseCoordinator(home: home).copyDatabase(
      of: vault, to: path, key: cluster.ring.copyKey(for: request.member),
      anchorStorage: EngineAnchorStorage())
    return try await invitation(to: request, secrets, sharing: item)
  }

  /// Hands the ring on to another member, after it has got a new key.
  ///
  /// The parameters are those of ``invite(_:confirmed:by:of:vault:sharing:copyingTo:)``.
  package static func handOn(
    to request: [UInt8], confirmed: Fingerprint, vault: Vault, sharing item: String
  ) async throws -> Invitation {
    let request = try JoinRequest(parsing: request)
    guard try request.fingerprint() == confirmed else { throw JoinError.otherRequestFingerprint }
    return try await invitation(to: request, NodeVault(vault), sharing: item)
  }

  private static func invitation(
    to request: JoinRequest, _ secrets: NodeVault, sharing item: String
  ) async throws -> Invitation {
    let cluster = try await secrets.cluster()
    let settings = JoinerSettings(
      cluster.settings, applicationsKey: try await secrets.shared(item))
    return try Invitation(
      to: request, cluster.ring, settings: settings.encoded(), random: .system)
  }

  /// Takes the newer keys of a ring that another member has handed on.
  ///
  /// - Throws: `JoinError`, `KeyRingError`; the errors of the vault.
  package static func takeKeys(
    of invitation: [UInt8], confirmed: Fingerprint, vault: Vault
  ) async throws {
    let secrets = NodeVault(vault)
    let keys = try await secrets.keys()
    let contents = try Invitation(parsing: invitation).open(
      with: keys, member: keys.member(), confirmed: confirmed)
    let settings = try await secrets.cluster().settings
    try await secrets.store(contents.ring, settings)
  }

  /// Makes a home without messages the member that an invitation is for.
  ///
  /// - Parameters:
  ///   - invitation: the file.
  ///   - confirmed: the fingerprint that the inviting member has shown.
  ///   - copy: the copy of the database that was made with it.
  ///   - engine: of this home. Start another one afterwards.
  /// - Throws: `JoinError`, ``ReplicationError``; the errors of the vault, the engine and the disk.
  package static func join(
    _ invitation: [UInt8], confirmed: Fingerprint, copy: FilePath, _ engine: MessagingEngine,
    vault: Vault, sharing item: String
  ) async throws {
    let secrets = NodeVault(vault)
    let keys = try await secrets.keys()
    let member = try keys.member()
    let contents = try Invitation(parsing: invitation).open(
      with: keys, member: member, confirmed: confirmed)
    let settings = try JoinerSettings(decoding: contents.settings)
    let copyKey = try contents.ring.copyKey(for: member)
    // A home that is refused keeps no secrets of this shard.
    try await MemberCopy.check(
      copy, key: copyKey, for: engine, shard: contents.ring.shard, member: member)
    // A home without them could not open its own tables.
    try await secrets.adopt(settings.applicationsKey, as: item)
    try await secrets.store(contents.ring, settings.settings)
    try await MemberCopy.install(
      copy, key: copyKey, into: engine, shard: contents.ring.shard, member: member)
  }
}
