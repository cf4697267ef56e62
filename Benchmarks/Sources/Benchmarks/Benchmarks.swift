import Foundation
import SystemPackage

/// Measures, prints a row for each workload, and fails if a goal is missed.
@main enum Benchmarks {
  static func main() async throws {
    let options = Options(ProcessInfo.processInfo.environment)
    let folder = FilePath(
      FileManager.default.temporaryDirectory.appendingPathComponent(
        "datavault-bench-\(UUID().uuidString)"
      ).path)
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    if CommandLine.arguments.dropFirst().first == MemoryCost.argument {
      return try MemoryCost.measureHere(CommandLine.arguments)
    }

    print(
      "measuring: ours / plain, median of the wall ratios; each peer / its own plain SQLite ...")
    let race = Race(
      contestants: try Contestants(
        folder: folder, pythons: options.pythons, script: options.peerScript))
    var table = ResultTable(peerNames: race.contestants.peers.map(\.name))
    for workload in Workload.all where options.wants(workload.name) {
      table.rows += options.progress(try race.run(workload))
    }
    for measurement in Measurement.all(options, race.contestants)
    where options.wants(measurement.name) {
      table.rows += options.progress(
        try await measurement.rows(folder.appending(measurement.folder)))
    }
    print("", table.text, separator: "\n")
    if let path = options.markdownPath {
      try (table.markdown + "\n").write(toFile: path, atomically: true, encoding: .utf8)
    }
    if !table.isMet {
      try? FileManager.default.removeItem(atPath: folder.string)
      exit(1)
    }
  }
}
