import Foundation

/// The resident memory of this process.
enum ResidentMemory {
  static func byteCount() throws -> Int {
    let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      .split(separator: " ")
    return (Int(fields[1]) ?? 0) * 4096
  }
}
