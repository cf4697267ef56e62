import Foundation

/// Many subscribers of a server, in a process of the load generator, which does what it is told.
final class LoadProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init(_ program: String, _ server: Servers.Started, isEncrypted: Bool = false) throws {
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments =
      ["subscribe", server.service, "\(server.process.port)"] + (isEncrypted ? ["tls"] : [])
    process.standardInput = input
    process.standardOutput = output
    try process.runWithUnblockedSignals()
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  /// Opens connections until so many subscribers wait for a message.
  func open(_ count: Int) throws {
    _ = try ask("open \(count)")
    // The last requests are sent, and the server has to read them.
    sleep(2)
  }

  /// Publishes a message, and returns the seconds until the last subscriber has it.
  func wake() throws -> Double { try ask("wake") }

  /// Waits until all subscribers are back on a server that was started again, and have a new message.
  func recover() throws { _ = try ask("recover") }

  private func ask(_ command: String) throws -> Double {
    try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
    let answer = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let figure = Double(answer.trimmingCharacters(in: .whitespacesAndNewlines)) else {
      throw BenchmarkError("the load generator failed at: \(command)")
    }
    return figure
  }
}
