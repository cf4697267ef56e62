import Glibc
import SystemPackage

/// The throughput of durable publications over HTTP, beside Redis with a sync for each turn of its event loop.
enum PublishingCost {
  static let name = "durable publish, 64 HTTP connections, PubNub"
  private static let connectionCount = 64
  private static let roundSeconds = 2.0

  static func measure(_ servers: Servers, folder: FilePath, rounds: Int) throws -> [ResultRow] {
    guard let redis = servers.startRedis(in: folder.appending("redis")) else { return [] }
    let ours = try servers.start(servers.makeApplication(in: folder.appending("home")))
    typealias Figures = (rate: Double, processorSeconds: Double)
    var pairs: [(ours: Figures, other: Figures)] = []
    func publish(_ server: Servers.Started) throws -> Figures {
      sync()
      return try servers.publish(
        to: server, connections: connectionCount, seconds: roundSeconds)
    }
    for round in 0...rounds {
      // Each side is first in every other pair, and the first pair does not count.
      let before = round.isMultiple(of: 2) ? nil : try publish(redis)
      let figures = try publish(ours)
      let pair = (figures, try before ?? publish(redis))
      if round > 0 { pairs.append(pair) }
    }
    let ratios = Spread(pairs.map { $0.ours.rate / $0.other.rate })
    let processor = Spread(pairs.map { $0.ours.processorSeconds / $0.other.processorSeconds })
    let goal = Goal.atLeast(0.4, limit: 0.25)
    return [
      ResultRow(
        name: "\(name) / Redis", figure: ratios.text, spread: ratios.range,
        processor: processor.text, goal: goal.description, result: goal.result(of: ratios)),
      plain("... messages a second; Redis", pairs.map { ($0.ours.rate, $0.other.rate) }),
      plain(
        "... processor time of a message, us; Redis",
        pairs.map { ($0.ours.processorSeconds * 1e6, $0.other.processorSeconds * 1e6) }),
    ]
  }

  /// A row with the medians of both sides, and the spread of ours.
  private static func plain(_ name: String, _ pairs: [(ours: Double, other: Double)]) -> ResultRow {
    let ours = Spread(pairs.map(\.ours))
    return ResultRow(
      name: name, figure: "\(ours.text); \(Spread(pairs.map(\.other)).text)", spread: ours.range,
      goal: "", result: .none)
  }
}
