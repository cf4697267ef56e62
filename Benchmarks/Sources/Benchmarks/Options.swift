import Foundation

/// What the environment asks for.
struct Options {
  /// Only rows whose name holds this.
  let only: String?
  /// Interpreters that have a peer, by its module.
  let pythons: [String: String]
  let peerScript: String
  /// An interpreter that has litequeue, and the script for it.
  let liteQueuePython: String?
  let liteQueueScript: String
  /// The built `datavault`.
  let command: String?
  /// Where to write the table in Markdown.
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

  /// Says at once what was measured.
  func progress(_ rows: [ResultRow]) -> [ResultRow] {
    for row in rows {
      print("  \(row.name): \(row.figure) (\(row.spread)), \(row.isMet ? "met" : "missed")")
    }
    return rows
  }
}
