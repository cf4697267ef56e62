import Foundation
import SystemPackage

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
  /// What measures the server; nil without the built `datavaultd`.
  let servers: Servers?
  /// The file for the table in Markdown.
  let markdownPath: String?

  init(_ environment: [String: String]) {
    func value(_ name: String) -> String? {
      environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
    only = value("BENCH_ONLY")
    pythons = [
      "sqlcipher3": environment["BENCH_SQLCIPHER_PYTHON"] ?? "",
      "apsw": environment["BENCH_MULTIPLE_CIPHERS_PYTHON"] ?? "",
    ].filter { !$0.value.isEmpty }
    peerScript = environment["BENCH_PEERS_SCRIPT"] ?? "Benchmarks/peer.py"
    liteQueuePython = value("BENCH_LITEQUEUE_PYTHON")
    liteQueueScript = environment["BENCH_LITEQUEUE_SCRIPT"] ?? "Benchmarks/litequeue_peer.py"
    command = value("BENCH_DATAVAULT")
    servers =
      if let program = value("BENCH_DATAVAULTD"), let load = value("BENCH_LOAD") {
        Servers(
          program: program, load: load, peers: value("BENCH_PEER_SERVERS").map { FilePath($0) })
      } else {
        nil
      }
    markdownPath = value("BENCH_MARKDOWN")
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
