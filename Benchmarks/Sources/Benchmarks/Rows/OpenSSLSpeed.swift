import Foundation
import Glibc

/// What the distribution's `openssl speed` says of AES-256-GCM at 4096 bytes.
enum OpenSSLSpeed {
  /// The cost of one block of 4096 bytes, from a run of one second.
  ///
  /// It is wall time and processor time alike: openssl counts its own processor time.
  static func costOfPage() throws -> Cost {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = [
      "speed", "-mr", "-seconds", "1", "-bytes", "4096", "-evp", "aes-256-gcm",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    // openssl stops at its alarm; on this thread of Swift's pool all signals are blocked, which a
    // child inherits: it would never stop.
    var alarm = sigset_t()
    var blocked = sigset_t()
    sigemptyset(&alarm)
    sigaddset(&alarm, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alarm, &blocked)
    defer { pthread_sigmask(SIG_SETMASK, &blocked, nil) }
    try process.run()
    let text = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    // +F:25:AES-256-GCM:1937307778.72 is bytes a second.
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("+F:") }),
      let rate = line.split(separator: ":").last.flatMap({ Double($0) }), rate > 0
    else { throw BenchmarkError("openssl speed answered: \(text)") }
    return Cost(wallSeconds: 4096 / rate, processorSeconds: 4096 / rate)
  }
}

/// A measurement that could not be taken.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
