import Glibc

/// The throughputs of our server and of a peer with the same work, alternately.
struct ThroughputRace {
  private let pairs: [(ours: Servers.Throughput, other: Servers.Throughput)]

  /// - Parameters:
  ///   - rounds: how often both work. A pair before them does not count.
  ///   - ours: loads our server.
  ///   - other: loads the peer.
  init(
    rounds: Int, ours: () throws -> Servers.Throughput, other: () throws -> Servers.Throughput
  ) throws {
    func measure(_ body: () throws -> Servers.Throughput) throws -> Servers.Throughput {
      sync()
      return try body()
    }
    let all = try (0...rounds).map { round in
      // Each side is first in every other pair.
      let before = round.isMultiple(of: 2) ? nil : try measure(other)
      let figures = try measure(ours)
      return (ours: figures, other: try before ?? measure(other))
    }
    pairs = Array(all.dropFirst())
  }

  /// The ratio of the throughputs, then both with their unit, then the processor time of a message.
  func rows(_ name: String, beside peer: String, goal: Goal) -> [ResultRow] {
    let ratios = Spread(pairs.map { $0.ours.rate / $0.other.rate })
    let processor = Spread(pairs.map { $0.ours.processorSeconds / $0.other.processorSeconds })
    return [
      ResultRow(
        name: "\(name) / \(peer)", figure: ratios.text, spread: ratios.range,
        processor: processor.text, goal: goal.description, result: goal.result(of: ratios)),
      ResultRow(
        "... messages a second; \(peer)", pairs.map { (ours: $0.ours.rate, other: $0.other.rate) }),
      ResultRow(
        "... processor time of a message, us; \(peer)",
        pairs.map { ($0.ours.processorSeconds * 1e6, $0.other.processorSeconds * 1e6) }),
    ]
  }
}
