import Foundation

/// The result of the distribution's `openssl speed` for AES-256-GCM with 4096 bytes.
enum OpenSSLSpeed {
  /// The cost of one block of 4096 bytes, from a run of one second.
  ///
  /// The value serves as wall time and as processor time, because openssl measures its processor
  /// time.
  static func costOfPage() throws -> Cost {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = [
      "speed", "-mr", "-seconds", "1", "-bytes", "4096", "-evp", "aes-256-gcm",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    // openssl stops at an alarm signal.
    try process.runWithUnblockedSignals()
    let text = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    // The output +F:25:AES-256-GCM:1937307778.72 is in bytes per second.
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("+F:") }),
      let rate = line.split(separator: ":").last.flatMap({ Double($0) }), rate > 0
    else { throw BenchmarkError("openssl speed printed: \(text)") }
    return Cost(wallSeconds: 4096 / rate, processorSeconds: 4096 / rate)
  }
}

/// A measurement that failed.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
