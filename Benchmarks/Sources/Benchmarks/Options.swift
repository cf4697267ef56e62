import Foundation

/// The options, from environment variables.
struct Options {
  /// Measures only rows whose name contains this text.
  let only: String?
  /// The interpreters of the peers, by the peer's module.
  let pythons: [String: String]
  let peerScript: String
  /// An interpreter with litequeue, and its script.
  let liteQueuePython: String?
  let liteQueueScript: String
  /// The built `datavault`.
  let command: String?
  /// The file for the table in Markdown.
  let markdownPath: String?

  init(_ environment: [String: String]) {
    only = environment["BENCH_ONLY"].flatMap { $0.isEmpty ? nil : $0 }
    pythons = [
      "sqlcipher3": environment["BENCH_SQLCIPHER_PYTHON"] ?? "",
      "apsw": environment["BENCH_MULTIPLE_CIPHERS_PYTHON"] ?? "",
    ].filter { !$0.value.isEmpty }
    peerScript = environment["BENCH_PEERS_SCRIPT"] ?? "Benchmarks/peer.py"
    liteQueuePython = environment["BENCH_LITEQUEUE_PYTHON"].flatMap { $0.isEmpty ? nil : $0 }
    liteQueueScript = environment["BENCH_LITEQUEUE_SCRIPT"] ?? "Benchmarks/litequeue_peer.py"
    command = environment["BENCH_DATAVAULT"].flatMap { $0.isEmpty ? nil : $0 }
    markdownPath = environment["BENCH_MARKDOWN"].flatMap { $0.isEmpty ? nil : $0 }
  }

  func wants(_ name: String) -> Bool {
    only.map { name.lowercased().contains($0.lowercased()) } ?? true
  }

  /// Prints a measurement when it is complete.
  func progress(_ rows: [ResultRow]) -> [ResultRow] {
    for row in rows {
      let spread = row.spread.isEmpty ? "" : " (\(row.spread))"
      let result = row.result == .none ? "" : ", \(row.result.rawValue)"
      print("  \(row.name): \(row.figure)\(spread)\(result)")
    }
    return rows
  }
}
