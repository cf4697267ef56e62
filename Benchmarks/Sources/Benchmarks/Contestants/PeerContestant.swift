import Foundation
import SystemPackage

/// Another encrypting SQLite, or its own plain files, in a Python process: `Benchmarks/peer.py`.
final class PeerContestant: Contestant {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var unread = Data()

  private struct Request: Encodable {
    let operation: String
    let recipe: DatabaseRecipe
    var pass: Pass?
    var kind: Workload.Kind?
  }

  private struct Answer: Decodable {
    var wallSeconds: Double?
    var processorSeconds: Double?
    var error: String?
  }

  /// - Parameter cipher: as `peer.py` names it; "plain" for none.
  init(python: String, script: String, module: String, cipher: String, folder: FilePath) throws {
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = [script, module, cipher, folder.string]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  func prepare(_ recipe: DatabaseRecipe) throws {
    _ = try ask(Request(operation: "prepare", recipe: recipe))
  }

  func run(_ pass: Pass, on recipe: DatabaseRecipe, as kind: Workload.Kind) throws -> Cost {
    let answer = try ask(Request(operation: "run", recipe: recipe, pass: pass, kind: kind))
    guard let wall = answer.wallSeconds, let processor = answer.processorSeconds else {
      throw BenchmarkError("the peer printed no times")
    }
    return Cost(wallSeconds: wall, processorSeconds: processor)
  }

  private func ask(_ request: Request) throws -> Answer {
    let line = try JSONEncoder().encode(request) + Data("\n".utf8)
    try input.fileHandleForWriting.write(contentsOf: line)
    while true {
      if let end = unread.firstIndex(of: 0x0A) {
        let answer = try JSONDecoder().decode(Answer.self, from: unread[..<end])
        unread = Data(unread[(end + 1)...])
        if let error = answer.error { throw BenchmarkError("a peer failed: \(error)") }
        return answer
      }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw BenchmarkError("a peer's process ended") }
      unread.append(more)
    }
  }
}
