import SystemPackage

/// The throughput of durable publications with receipts over STOMP, beside RabbitMQ.
enum STOMPPublishingCost {
  static let name = "durable publish with receipt, STOMP"
  private static let roundSeconds = 2.0

  static func measure(_ servers: Servers, folder: FilePath, rounds: Int) throws -> [ResultRow] {
    guard let rabbit = servers.startRabbitMQ(in: folder.appending("rabbitmq")) else { return [] }
    let ours = try servers.startSTOMP(servers.makeApplication(in: folder.appending("home")))
    func rows(_ name: String, connections: Int, goal: Goal) throws -> [ResultRow] {
      try ThroughputRace(rounds: rounds) {
        try servers.publish(to: ours, connections: connections, seconds: roundSeconds)
      } other: {
        try servers.publish(to: rabbit, connections: connections, seconds: roundSeconds)
      }.rows(name, beside: "RabbitMQ", goal: goal)
    }
    return try rows("\(name), 1 connection", connections: 1, goal: .atLeast(3, limit: 0.8))
      + rows("\(name), 64 connections", connections: 64, goal: .atLeast(1))
  }
}
