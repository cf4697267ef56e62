internal import CNATS

/// What the brokers say of a shard's stream.
package struct LogStatus: Sendable, Equatable {
  /// A broker that keeps the stream.
  package struct Peer: Sendable, Equatable {
    package let name: String
    /// Whether it has everything that the leader has.
    package let isCurrent: Bool
    package let isOffline: Bool
    /// How many of Raft's operations it lacks.
    package let lag: UInt64
  }

  /// The first and the last record; `last` is `first - 1` in an empty stream.
  package let first: UInt64
  package let last: UInt64
  /// Bytes on the disk of each peer.
  package let byteCount: UInt64
  package let replicaCount: Int
  /// The broker that leads the stream; nil for a single broker.
  package let leader: String?
  /// The other brokers that keep it.
  package let peers: [Peer]
  /// The address of the broker that this node uses.
  package let broker: String
  /// The version that this broker says it has; nil if it did not say so in time.
  package let version: String?
  /// What an operator should look at.
  package let warnings: [String]
}

extension JetStreamLog {
  /// Asks the brokers for the state of the stream.
  package func status() throws(LogError) -> LogStatus {
    let stream = try stream()
    let broker = stream.connection.brokerURL().printable
    let version = BrokerGreeting.version(of: broker)
    return try unsafe stream.info { info in
      let extent = unsafe ShardStream.Extent(info.State)
      let cluster = unsafe info.Cluster?.pointee
      let peers = unsafe (0..<Int(cluster?.ReplicasLen ?? 0)).compactMap { index in
        unsafe cluster?.Replicas?[index].map { unsafe LogStatus.Peer($0.pointee) }
      }
      let replicaCount = unsafe Int(info.Config?.pointee.Replicas ?? 1)
      return unsafe LogStatus(
        first: extent.first, last: extent.last, byteCount: info.State.Bytes,
        replicaCount: replicaCount,
        leader: cluster?.Leader.map { unsafe String(cString: $0).printable },
        peers: peers, broker: broker, version: version,
        warnings: warnings(replicaCount: replicaCount, peers: peers)
          + BrokerGreeting.warnings(version: version))
    }
  }

  private func warnings(replicaCount: Int, peers: [LogStatus.Peer]) -> [String] {
    var warnings: [String] = []
    if replicaCount < 3 {
      warnings.append("the stream is on \(replicaCount) broker: a disk that is lost loses records")
    }
    for peer in peers where peer.isOffline { warnings.append("broker \(peer.name) is offline") }
    for peer in peers where !peer.isOffline && !peer.isCurrent {
      warnings.append("broker \(peer.name) lacks \(peer.lag) operations")
    }
    if !settings.demandsTLS, !settings.addresses.allSatisfy(Self.isLoopback) {
      warnings.append("nodes and brokers speak without TLS: others see sizes, times and nkeys")
    }
    return warnings
  }

  private static func isLoopback(_ address: String) -> Bool {
    ["nats://127.", "nats://localhost:", "nats://[::1]"].contains(where: address.hasPrefix)
  }
}

extension LogStatus.Peer {
  fileprivate init(_ info: jsPeerInfo) {
    unsafe self.init(
      name: info.Name.map { unsafe String(cString: $0).printable } ?? "", isCurrent: info.Current,
      isOffline: info.Offline, lag: info.Lag)
  }
}
