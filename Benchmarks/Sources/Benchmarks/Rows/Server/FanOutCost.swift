import SystemPackage

/// The latency of a message for the last of 1,000 subscribers with a WebSocket each, beside nchan.
enum FanOutCost {
  static let name = "one message to 1,000 WebSocket subscribers"
  private static let subscriberCount = 1_000
  /// The messages of a round, one after the other: one message alone takes milliseconds.
  private static let messageCount = 10

  static func measure(_ servers: Servers, folder: FilePath, rounds: Int) throws -> [ResultRow] {
    guard let nchan = servers.startNchan(in: folder.appending("nchan"), isWebSocket: true) else {
      return []
    }
    let application = try servers.makeApplication(in: folder.appending("home"))
    let ours = try servers.start(application, service: application.pusherService)
    func latency(of subscribers: LoadProcess) throws -> Double {
      try (0..<messageCount).reduce(0) { sum, _ in try sum + subscribers.wake() }
        / Double(messageCount)
    }
    let (here, there) = (
      try LoadProcess(servers.load, ours), try LoadProcess(servers.load, nchan)
    )
    try here.open(subscriberCount)
    try there.open(subscriberCount)
    let pairs = try (0...rounds).map { round in
      // Each side is first in every other round.
      let before = round.isMultiple(of: 2) ? nil : try latency(of: there)
      let seconds = try latency(of: here)
      return (ours: seconds * 1000, other: try (before ?? latency(of: there)) * 1000)
    }.dropFirst()
    let (ratios, goal) = (Spread(pairs.map { $0.ours / $0.other }), Goal.atMost(1.5))
    return [
      ResultRow(
        name: "\(name): the last one / nchan", figure: ratios.text, spread: ratios.range,
        goal: goal.description, result: goal.result(of: ratios)),
      ResultRow("... latency, ms; nchan", Array(pairs)),
    ]
  }
}
