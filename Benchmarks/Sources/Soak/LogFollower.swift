import Foundation
import MessagingQueue
import Synchronization
import SystemPackage
import VaultedDatabase

/// The second process: it follows the log and looks for gaps in the messages of each publisher.
enum LogFollower {
  /// The report at its end, as JSON.
  struct Report: Codable, Sendable {
    var count = 0
    /// Messages that arrived out of order, twice, or after a missing one.
    var gaps = 0
    /// How often retention deleted messages before they were read.
    var overtaken = 0
  }

  /// Runs until its standard input ends.
  static func run(home: FilePath) async throws {
    let engine = try await MessagingEngine.start(DataVaultHome(home))
    let channel = try Channel(SoakLoad.channelName)
    let report = Mutex(Report())
    let following = Task {
      while !Task.isCancelled {
        var last: [Int: Int] = [:]
        do {
          for try await message in try await engine.messages(of: channel, after: .now) {
            guard let payload = SoakPayload(message.payload) else { continue }
            let before = last.updateValue(payload.number, forKey: payload.publisher)
            report.withLock { report in
              report.count += 1
              if let before, payload.number != before + 1 { report.gaps += 1 }
            }
          }
        } catch let error as EngineError where error.code == .messagesRemoved {
          report.withLock { $0.overtaken += 1 }
        }
      }
    }
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while readLine() != nil {}
        continuation.resume()
      }
    }
    following.cancel()
    try await following.value
    try await engine.stop()
    let bytes = try JSONEncoder().encode(report.withLock { $0 })
    print(String(decoding: bytes, as: UTF8.self))
  }
}

/// A ``LogFollower`` in its own process.
final class FollowerProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  var id: Int32 { process.processIdentifier }

  init(home: FilePath) throws {
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = [Soak.followerArgument, home.string]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  /// Ends the process and returns its report.
  func end() throws -> LogFollower.Report {
    try input.fileHandleForWriting.close()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return try JSONDecoder().decode(LogFollower.Report.self, from: bytes)
  }
}
