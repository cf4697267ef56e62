/// One row of the table.
struct ResultRow {
  let name: String
  /// The median as text: a ratio, or a figure with its unit.
  let figure: String
  let spread: String
  var processor = ""
  /// The figures of the peers, by name.
  var peers: [String: String] = [:]
  let goal: String
  let result: GoalResult

  /// A row with a figure that is not a ratio.
  init(
    _ name: String, _ values: Spread, unit: String, goal: Goal,
    peers: [String: Spread] = [:]
  ) {
    self.init(
      name: name, figure: "\(values.text) \(unit)", spread: values.range,
      peers: peers.mapValues { "\($0.text) \(unit)" },
      goal: goal.description.isEmpty ? "" : "\(goal) \(unit)",
      result: goal.result(of: values))
  }

  /// A row with the difference of two costs, in milliseconds.
  init(
    beyond name: String, _ pairs: [(ours: Cost, other: Cost)], goal milliseconds: Double,
    limit: Double? = nil
  ) {
    let differences = pairs.map { $0.ours - $0.other }
    self.init(
      name, Spread(differences.map { $0.wallSeconds * 1000 }), unit: "ms",
      goal: .atMost(milliseconds, limit: limit))
    processor = "\(Spread(differences.map { $0.processorSeconds * 1000 }).text) ms"
  }

  /// A row without a goal, with the medians of both sides and the spread of ours.
  init(_ name: String, _ pairs: [(ours: Double, other: Double)]) {
    let ours = Spread(pairs.map(\.ours))
    self.init(
      name: name, figure: "\(ours.text); \(Spread(pairs.map(\.other)).text)", spread: ours.range,
      goal: "", result: .none)
  }

  init(
    name: String, figure: String, spread: String, processor: String = "",
    peers: [String: String] = [:], goal: String, result: GoalResult
  ) {
    self.name = name
    self.figure = figure
    self.spread = spread
    self.processor = processor
    self.peers = peers
    self.goal = goal
    self.result = result
  }
}

/// The table of all rows, for the terminal and for `docs/development/benchmarks.md`.
struct ResultTable {
  let peerNames: [String]
  var rows: [ResultRow] = []

  var isMet: Bool { rows.allSatisfy { $0.result != .missed } }

  private var heads: [String] {
    ["workload", "ours", "spread", "ours, cpu"] + peerNames + ["goal", ""]
  }

  private var cells: [[String]] {
    rows.map { row in
      [row.name, row.figure, row.spread, row.processor] + peerNames.map { row.peers[$0] ?? "" }
        + [row.goal, row.result.rawValue]
    }
  }

  /// The table as columns separated by spaces.
  var text: String {
    let lines = [heads] + cells
    let widths = heads.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    return lines.map { line in
      zip(line, widths).map { cell, width in
        cell + String(repeating: " ", count: width - cell.count)
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  /// The table in Markdown.
  var markdown: String {
    let lines = [heads, heads.map { _ in "---" }] + cells
    return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
  }
}
