package import DataVault
package import Replication
package import VaultCrypto

/// What a node keeps in its vault: its keys, the ring of its shard, and where the brokers are.
package struct NodeVault: Sendable {
  private let vault: Vault

  /// - Parameter vault: the messaging vault of the home, unlocked.
  package init(_ vault: Vault) { self.vault = vault }

  /// The node's keys; the first call makes them.
  ///
  /// - Throws: ``NodeKeysError``; the errors of the vault.
  package func keys() async throws -> NodeKeys {
    let item = try await vault.item(
      NodeKeys.itemName, orStoring: NodeKeys(from: .system).encodedBytes(), kind: .binary)
    return try NodeKeys(decoding: item.bytes)
  }

  /// The ring and the settings.
  ///
  /// - Throws: ``ReplicationError`` if the vault lacks one of them, or they cannot be read.
  package func cluster() async throws -> Cluster {
    do {
      let ring = try await vault.item(KeyRing.itemName, kind: .binary)
      let settings = try await vault.item(ClusterSettings.itemName, kind: .string)
      return Cluster(
        ring: try KeyRing(decoding: ring.bytes),
        settings: try ClusterSettings(parsing: settings.bytes.array))
    } catch let error as VaultError where error.code == .itemNotFound {
      throw ReplicationError(
        .state, "the vault has no ring or no settings of a cluster",
        hint: "make the first member with datavaultd cluster provision, or join")
    }
  }

  /// Stores the ring and the settings; a ring that is there must be of the same shard.
  ///
  /// - Throws: ``KeyRingError``; the errors of the vault.
  package func store(_ ring: borrowing KeyRing, _ settings: ClusterSettings) async throws {
    let stored = try await vault.item(
      KeyRing.itemName, orStoring: ring.encodedBytes(), kind: .binary)
    var known = try KeyRing(decoding: stored.bytes)
    try known.adoptNewerKeys(of: ring)
    try await vault.set(known.encodedBytes(), kind: .binary, for: KeyRing.itemName)
    try await store(settings)
  }

  /// Adds a key to the ring, under which nothing is sealed before a key switch.
  ///
  /// - Returns: its number.
  package func addKey() async throws -> UInt32 {
    var ring = try await cluster().ring.copy()
    try ring.addKey(from: .system)
    try await vault.set(ring.encodedBytes(), kind: .binary, for: KeyRing.itemName)
    return ring.keyNumbers.upperBound
  }

  /// Removes the keys of the ring before a number.
  func removeKeys(before number: UInt32) async throws {
    var ring = try await cluster().ring.copy()
    guard ring.keyNumbers.lowerBound < number else { return }
    ring.removeKeys(before: number)
    try await vault.set(ring.encodedBytes(), kind: .binary, for: KeyRing.itemName)
  }

  /// Stores the settings.
  package func store(_ settings: ClusterSettings) async throws {
    try await vault.set(
      SecretBytes(copying: settings.text), kind: .string, for: ClusterSettings.itemName)
  }

  /// A secret of a server that all members share.
  package func shared(_ name: String) async throws -> SecretBytes {
    let item = try await vault.item(name, kind: .binary)
    return item.bytes.copy()
  }

  /// Stores a secret that all members share; one that is there must be the same.
  package func adopt(_ secret: borrowing SecretBytes, as name: String) async throws {
    let item = try await vault.item(name, orStoring: secret.copy(), kind: .binary)
    guard SecretBytes.isEqual(item.bytes, secret) else {
      throw ReplicationError(
        .state, "the vault has another item '\(name)' than the cluster",
        hint: "join with a new home")
    }
  }

  /// Removes what belongs to a shard that the node has left, and the node's keys: a later member is another one.
  package func clear() async throws {
    for name in [KeyRing.itemName, ClusterSettings.itemName, NodeKeys.itemName] {
      do throws(VaultError) {
        try await vault.removeItem(name)
      } catch {
        guard error.code == .itemNotFound else { throw error }
      }
    }
  }

  /// What all members of a shard share.
  package struct Cluster: ~Copyable, Sendable {
    package let ring: KeyRing
    package let settings: ClusterSettings
  }
}

extension SecretBytes {
  /// A copy in ordinary memory, of what is not secret.
  var array: [UInt8] { unsafe withUnsafeBytes { unsafe Array($0) } }
}
