import Foundation

/// The size of `datavault` as it is installed: stripped, with Swift's libraries in it.
enum InstalledSize {
  static let name = "installed size of datavault"

  /// - Parameter program: the installed `datavault`.
  static func measure(program: String) throws -> ResultRow {
    let attributes = try FileManager.default.attributesOfItem(atPath: program)
    guard let byteCount = attributes[.size] as? UInt64 else {
      throw BenchmarkError("\(program) has no size")
    }
    return ResultRow(name, Spread([Double(byteCount) / 1e6]), unit: "MB", goal: .atMost(36))
  }
}
