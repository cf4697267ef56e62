import Foundation

/// The resident memory of this process, or of another one.
enum ResidentMemory {
  static func byteCount(of process: pid_t = getpid()) throws -> Int {
    let fields = try String(contentsOfFile: "/proc/\(process)/statm", encoding: .utf8)
      .split(separator: " ")
    return (Int(fields[1]) ?? 0) * 4096
  }
}
