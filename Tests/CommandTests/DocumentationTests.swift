import Foundation
import Testing

@Suite struct DocumentationTests {
  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
  }

  @Test func `docs/reference/command-line.md describes every command and every option`() throws {
    let page = try Self.text("docs/reference/command-line.md")
    var commands: [[String]] = [[]]
    var options: Set<String> = []
    while let command = commands.popLast() {
      let help = try Tool.run(command + ["--help"]).text
      for line in help.split(separator: "\n") {
        // Subcommands and options are indented by two spaces in their sections.
        let word = line.dropFirst(2).prefix { $0 != " " }
        guard line.hasPrefix("  "), !word.isEmpty else { continue }
        if word.first!.isLowercase, Self.isInSection("SUBCOMMANDS:", line, of: help) {
          commands.append(command + [String(word)])
        }
        options.formUnion(
          line.matches(of: /--[a-z][a-z-]+/).map { String($0.output) })
      }
      #expect(
        page.contains("datavault \(command.joined(separator: " "))"), "\(command) is not described")
    }
    #expect(options.contains("--new-salt-fd"))
    #expect(options.filter { !page.contains($0) } == [])
  }

  @Test(arguments: [
    "docs/development/testing.md", "docs/explanation/supdatavault.md",
    "docs/explanation/queue-semantics.md",
  ])
  func `every test that a page names exists`(page: String) throws {
    let tests = Self.repository.appendingPathComponent("Tests").path
    let sources = try FileManager.default.subpathsOfDirectory(atPath: tests)
      .filter { $0.hasSuffix(".swift") }.map { try Self.text("Tests/\($0)") }
    // Quoted names in the rows of tables.
    let names = try Self.text(page).split(separator: "\n")
      .filter { $0.hasPrefix("| ") }
      .flatMap { $0.matches(of: /"([^"]+)"/).map { String($0.output.1) } }
    #expect(names.count > 10)
    for name in names {
      #expect(sources.contains { $0.contains("func `\(name)`") }, "no test is named: \(name)")
    }
  }

  private static func isInSection(_ title: String, _ line: Substring, of help: String) -> Bool {
    help[..<line.startIndex].split(separator: "\n").last { !$0.hasPrefix(" ") }?
      .hasSuffix(title) == true
  }
}
