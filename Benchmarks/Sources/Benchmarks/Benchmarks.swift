import Foundation
import SystemPackage
import VaultedDatabase

/// Measures, prints a row a workload, and fails when a goal is missed.
@main enum Benchmarks {
  private static let rounds = 7
  private static let memoryGoalByteCount = 16 << 20

  static func main() async throws {
    let folder = FilePath(
      FileManager.default.temporaryDirectory.appendingPathComponent(
        "datavault-bench-\(UUID().uuidString)"
      ).path)
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }

    print("measuring, \(rounds) pairs each: ours / other, median of the wall ratios (spread) ...")
    var comparisons: [Comparison] = []
    comparisons.append(try await PageCost.measure(decrypting: false, rounds: rounds))
    comparisons.append(try await PageCost.measure(decrypting: true, rounds: rounds))
    comparisons.append(try await PageCost.measureOpeningUnderChangingKeys(rounds: rounds))
    let publishing = try await PublishCost.measure(folder: folder, rounds: rounds)
    comparisons.append(publishing.comparison)
    comparisons.append(
      try await UnlockCost.measure(
        home: DataVaultHome(folder.appending("unlock")), rounds: rounds))

    let growth = publishing.memoryGrowthByteCount
    let grows = growth > memoryGoalByteCount
    for comparison in comparisons { print(comparison.row) }
    print(
      "memory grown from 10,000 to 100,000 messages: \(growth >> 20) MiB, "
        + "goal \(memoryGoalByteCount >> 20) MiB, \(grows ? "missed" : "met")")
    if grows || comparisons.contains(where: { !$0.isMet }) { exit(1) }
  }
}
