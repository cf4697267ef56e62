import Foundation
import Glibc

/// Clients that send lines continuously, and send unanswered lines again.
final class Traffic: @unchecked Sendable {
  private let spool: Spool
  private let clientCount: Int
  private let burst: Int
  private let threads = DispatchGroup()

  // The lock protects all properties below.
  private let lock = NSLock()
  private var isOver = false
  private var sentIDs: Set<String> = []
  private var answeredIDs: Set<String> = []
  private var refusals: [String] = []
  /// The lines without an answer, by client.
  private var unanswered: [Int: [String]] = [:]

  /// - Parameter burst: the number of lines that a client sends before it reads their answers.
  init(_ spool: Spool, clientCount: Int, burst: Int) {
    self.spool = spool
    self.clientCount = clientCount
    self.burst = burst
  }

  var sent: Set<String> { lock.withLock { sentIDs } }
  /// The ids of lines that were answered with `ok`.
  var answered: Set<String> { lock.withLock { answeredIDs } }
  /// Answers other than `ok` and the refusals of a daemon that starts or stops.
  var unexpectedAnswers: [String] {
    lock.withLock { refusals }.filter {
      !["starting", "locked", "stopped"].contains($0.split(separator: " ").last)
    }
  }

  /// Starts the clients.
  ///
  /// The daemon is running or starting.
  func begin(round: Int) {
    lock.withLock { isOver = false }
    for client in 0..<clientCount {
      threads.enter()
      Thread.detachNewThread { [self] in
        run(client, round)
        threads.leave()
      }
    }
  }

  /// Waits for the clients to end, after their daemon has ended.
  func end() {
    lock.withLock { isOver = true }
    threads.wait()
  }

  private func run(_ number: Int, _ round: Int) {
    var client: Client?
    while client == nil {
      if lock.withLock({ isOver }) { return }
      client = try? Client(spool.socket)
      // The daemon does not listen yet.
      if client == nil { usleep(2_000) }
    }
    guard let client else { return }
    var count = 0
    while true {
      var lines = lock.withLock { unanswered[number] ?? [] }
      while lines.count < burst {
        lines.append("r\(round).c\(number).\(count) payload \(count)")
        count += 1
      }
      lock.withLock {
        unanswered[number] = lines
        sentIDs.formUnion(lines.map(Self.id))
      }
      guard client.send(lines.map { $0 + "\n" }.joined()) else { return }
      for line in lines {
        guard let answer = client.answer() else { return }
        take(answer, to: line, of: number)
      }
    }
  }

  private func take(_ answer: String, to line: String, of client: Int) {
    let id = Self.id(line)
    lock.withLock {
      if answer.hasPrefix("ok \(id) ") {
        answeredIDs.insert(id)
        unanswered[client]?.removeAll { $0 == line }
      } else {
        refusals.append(answer)
      }
    }
  }

  private static func id(_ line: String) -> String { String(line.prefix { $0 != " " }) }
}
