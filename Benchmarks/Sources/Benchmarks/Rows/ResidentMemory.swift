import Foundation

/// The memory of this process that is in RAM.
enum ResidentMemory {
  static func byteCount() throws -> Int {
    let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
      .split(separator: " ")
    return (Int(fields[1]) ?? 0) * 4096
  }
}
