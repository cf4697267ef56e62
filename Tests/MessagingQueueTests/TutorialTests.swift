import Foundation
import Glibc
import TestSupport
import Testing

/// Tests the articles of `MessagingQueue.docc`; `make docs` builds them, and the tutorial in a
/// package of its own.
@Suite struct TutorialTests {
  private static func article(_ name: String) throws -> String {
    try Repository.text("Sources/MessagingQueue/MessagingQueue.docc/\(name).md")
  }

  @Test func `the tutorial shows the files that are compiled here`() throws {
    let folder = "Tests/Support/Tutorial"
    let names = try FileManager.default.contentsOfDirectory(atPath: Repository.path(folder))
    let article = try Self.article("TenMinutes")
    #expect(names.count == 5)
    for name in names {
      let file = try Repository.text("\(folder)/\(name)")
      #expect(article.contains("```swift\n\(file)```\n"), "\(name)")
    }
  }

  /// The examples are a target on which the tests of MessagingQueueLifecycle depend.
  @Test(arguments: ["DeliveringAndSettling", "PublishingAndDurability", "StartingAndStopping"])
  func `the code in an article is compiled`(name: String) throws {
    let example = try Repository.text("Tests/Support/ArticleExamples/\(name).swift")
    let article = try Self.article(name)
    #expect(article.contains("```swift\n\(example)```\n"))
    #expect(article.ranges(of: "```swift\n").count == 1)
  }

  @Test func `the article on errors lists every error code`() throws {
    let article = try Self.article("Errors")
    let codes = try Repository.text("Sources/MessagingQueue/Engine/EngineError.swift")
      .matches(of: /static let (\w+) = Self/).map { String($0.output.1) }
    #expect(codes.count > 20)
    #expect(codes.filter { !article.contains("| `\($0)` |") } == [])
  }

  @Test func `the tutorial's program loses nothing when a worker is killed`() throws {
    let folder = ScratchFolder()
    #expect(try run(["secure"], in: folder) == "secured\n")
    #expect(try run(["publish", "one"], in: folder) == "on the disk: 1\n")

    // Line by line, so that the test gets the output before the program ends.
    let worker = Process()
    worker.executableURL = URL(fileURLWithPath: "/usr/bin/stdbuf")
    worker.arguments = ["-oL", Program.built("Shop"), "hold"]
    worker.currentDirectoryURL = folder.url
    let output = Pipe()
    worker.standardOutput = output
    try worker.run()
    #expect(try output.fileHandleForReading.read(upToCount: 10) == Data("holding 1\n".utf8))
    kill(worker.processIdentifier, SIGKILL)
    worker.waitUntilExit()
    #expect(try run(["work"], in: folder) == "attempt 2: one\n")
  }

  private func run(_ arguments: [String], in folder: ScratchFolder) throws -> String {
    let program = try Program.run(Program.built("Shop"), arguments, in: folder.url.path)
    #expect(program.status == 0)
    return program.text
  }
}
