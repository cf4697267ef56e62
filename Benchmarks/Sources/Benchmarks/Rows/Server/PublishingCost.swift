import SystemPackage

/// The throughput of durable publications over HTTP, beside Redis with a sync for each turn of its event loop.
enum PublishingCost {
  static let name = "durable publish, 64 HTTP connections, PubNub"
  private static let connectionCount = 64
  private static let roundSeconds = 2.0

  static func measure(_ servers: Servers, folder: FilePath, rounds: Int) throws -> [ResultRow] {
    guard let redis = servers.startRedis(in: folder.appending("redis")) else { return [] }
    let ours = try servers.start(servers.makeApplication(in: folder.appending("home")))
    func publish(_ server: Servers.Started) throws -> Servers.Throughput {
      try servers.publish(to: server, connections: connectionCount, seconds: roundSeconds)
    }
    return try ThroughputRace(rounds: rounds) {
      try publish(ours)
    } other: {
      try publish(redis)
    }.rows(name, beside: "Redis", goal: .atLeast(0.4, limit: 0.25))
  }
}
