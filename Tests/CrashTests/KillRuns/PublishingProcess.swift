import Dispatch
import Foundation
import Glibc
import SystemPackage
import TestSupport

/// A `datavault queue publish` that gets lines until it is killed.
final class PublishingProcess {
  private struct Progress: Decodable {
    var published: Int
  }

  private let process = Process()
  private let acknowledgements: URL
  private let errors: URL
  private let fed = DispatchSemaphore(value: 0)

  /// Starts the process, and a thread that writes lines in bursts of random size with pauses
  /// between some.
  ///
  /// - Parameters:
  ///   - name: distinguishes the process from others with the same tool.
  ///   - burst: the most lines of one burst.
  ///   - pauseEvery: after how many bursts it pauses, on average.
  ///   - count: after this number of lines it waits for the kill.
  ///   - line: the line of a number, without its newline.
  init(
    tool: CommandLineTool, channel: String, name: String = "", options: [String] = [],
    burst: Int = 2_000, pauseEvery: Int = 4, count: Int = 100_000, seed: UInt64,
    line: @escaping @Sendable (Int) -> [UInt8]
  ) throws {
    acknowledgements = tool.folder.appendingPathComponent("acknowledged\(name)")
    errors = tool.folder.appendingPathComponent("publish-error\(name)")
    let input = Pipe()
    process.executableURL = URL(fileURLWithPath: Program.datavault)
    process.arguments = tool.queueArguments(["publish", channel, "--json"] + options)
    process.standardInput = input
    process.standardOutput = try tool.writing("acknowledged\(name)")
    process.standardError = try tool.writing("publish-error\(name)")
    signal(SIGPIPE, SIG_IGN)
    try process.run()
    // The parent's copy of the reading end would keep the pipe open after the kill.
    try input.fileHandleForReading.close()
    let descriptor = dup(input.fileHandleForWriting.fileDescriptor)
    try input.fileHandleForWriting.close()
    let fed = fed
    Thread.detachNewThread {
      Self.feed(line, count, burst, pauseEvery, to: descriptor, seed: seed)
      close(descriptor)
      fed.signal()
    }
  }

  /// The number of messages acknowledged so far: the last complete line on standard output.
  var acknowledgedCount: Int {
    get throws {
      let lines = try Data(contentsOf: acknowledgements)
        .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
      guard let last = lines.last else { return 0 }
      return try JSONDecoder().decode(Progress.self, from: Data(last)).published
    }
  }

  /// Returns after the first acknowledged commit.
  func waitForFirstAcknowledgement() throws {
    do {
      try eventually {
        let count = try acknowledgedCount
        guard count > 0 || process.isRunning else { throw CrashTestError("the process has ended") }
        return count > 0
      }
    } catch {
      kill()
      let output = try String(contentsOf: errors, encoding: .utf8)
      throw CrashTestError("nothing was acknowledged: \(error) \(output)")
    }
  }

  /// Sends SIGKILL, and ends the feeding thread.
  func kill() {
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    fed.wait()
  }

  private static func feed(
    _ line: (Int) -> [UInt8], _ count: Int, _ most: Int, _ pauseEvery: Int, to descriptor: Int32,
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    var number = 0
    while number < count {
      var burst: [UInt8] = []
      for _ in 0...random.next(most) {
        burst += line(number)
        burst.append(UInt8(ascii: "\n"))
        number += 1
      }
      guard (try? FileDescriptor(rawValue: descriptor).writeAll(burst)) != nil else { return }
      // Lines come at random moments.
      if random.next(pauseEvery) == 0 { usleep(UInt32(random.next(30_000))) }
    }
    // The end of the input would let the process end, so the thread waits for the kill instead.
    var closed = pollfd(fd: descriptor, events: 0, revents: 0)
    poll(&closed, 1, -1)
  }
}
