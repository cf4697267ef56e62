import Foundation
import Glibc
import Testing

/// Tests the articles of `MessagingQueue.docc`; `make docs` builds them, and the tutorial in a
/// package of its own.
@Suite struct TutorialTests {
  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static func article(_ name: String) throws -> String {
    try String(
      contentsOf: repository.appendingPathComponent(
        "Sources/MessagingQueue/MessagingQueue.docc/\(name).md"), encoding: .utf8)
  }

  @Test func `the tutorial shows the files that are compiled here`() throws {
    let folder = Self.repository.appendingPathComponent("Tests/Support/Tutorial")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    let article = try Self.article("TenMinutes")
    #expect(names.count == 5)
    for name in names {
      let file = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
      #expect(article.contains("```swift\n\(file)```\n"), "\(name)")
    }
  }

  @Test func `the article on errors lists every error code`() throws {
    let article = try Self.article("Errors")
    let source = try String(
      contentsOf: Self.repository.appendingPathComponent(
        "Sources/MessagingQueue/Engine/EngineError.swift"), encoding: .utf8)
    let codes = source.matches(of: /static let (\w+) = Self/).map { String($0.output.1) }
    #expect(codes.count > 20)
    #expect(codes.filter { !article.contains("| `\($0)` |") } == [])
  }

  @Test func `the tutorial's program loses nothing when a worker is killed`() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("tutorial-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    #expect(try run(["secure"], in: folder) == "secured\n")
    #expect(try run(["publish", "one"], in: folder) == "on the disk: 1\n")

    // Line by line, so that the test gets the output before the program ends.
    let worker = program(["hold"], in: folder)
    worker.arguments = try ["-oL", #require(worker.executableURL).path, "hold"]
    worker.executableURL = URL(fileURLWithPath: "/usr/bin/stdbuf")
    let output = Pipe()
    worker.standardOutput = output
    try worker.run()
    #expect(try output.fileHandleForReading.read(upToCount: 10) == Data("holding 1\n".utf8))
    kill(worker.processIdentifier, SIGKILL)
    worker.waitUntilExit()
    #expect(try run(["work"], in: folder) == "attempt 2: one\n")
  }

  private func program(_ arguments: [String], in folder: URL) -> Process {
    let program = Process()
    program.executableURL = Bundle.main.bundleURL.appendingPathComponent("Shop")
    program.arguments = arguments
    program.currentDirectoryURL = folder
    return program
  }

  private func run(_ arguments: [String], in folder: URL) throws -> String {
    let program = program(arguments, in: folder)
    let output = Pipe()
    program.standardOutput = output
    try program.run()
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    program.waitUntilExit()
    #expect(program.terminationStatus == 0)
    return String(decoding: printed, as: UTF8.self)
  }
}
