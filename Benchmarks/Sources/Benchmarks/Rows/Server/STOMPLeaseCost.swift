import SystemPackage

/// The throughput of eight workers that lease messages over STOMP and acknowledge each with a receipt, beside RabbitMQ.
enum STOMPLeaseCost {
  static let name = "lease + acknowledge, STOMP, 8 workers"
  private static let workerCount = 8
  private static let messageCount = 4_000

  static func measure(_ servers: Servers, folder: FilePath, rounds: Int) throws -> [ResultRow] {
    guard let rabbit = servers.startRabbitMQ(in: folder.appending("rabbitmq")) else { return [] }
    let application = try servers.makeApplication(in: folder.appending("home"))
    try servers.allowLeases(application)
    let ours = try servers.startSTOMP(application)
    return try [1, 100].flatMap { prefetchCount in
      func work(_ server: Servers.Started) throws -> Servers.Throughput {
        try servers.fill(server, messages: messageCount)
        return try servers.work(
          server, workers: workerCount, messages: messageCount, prefetchCount: prefetchCount)
      }
      return try ThroughputRace(rounds: rounds) {
        try work(ours)
      } other: {
        try work(rabbit)
      }.rows(
        "\(name), prefetch \(prefetchCount)", beside: "RabbitMQ",
        goal: .atLeast(1, limit: prefetchCount == 1 ? 0.25 : nil))
    }
  }
}
