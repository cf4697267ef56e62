import Foundation
import Testing

@Suite struct DocumentationTests {
  private static let page = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("docs/command-line.md")

  @Test func `every command and every option stands in docs/command-line.md`() throws {
    let page = try String(contentsOf: Self.page, encoding: .utf8)
    var commands: [[String]] = [[]]
    var options: Set<String> = []
    while let command = commands.popLast() {
      let help = try Tool.run(command + ["--help"]).text
      for line in help.split(separator: "\n") {
        // Subcommands stand at two spaces in their sections, options at two spaces too.
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

  private static func isInSection(_ title: String, _ line: Substring, of help: String) -> Bool {
    help[..<line.startIndex].split(separator: "\n").last { !$0.hasPrefix(" ") }?
      .hasSuffix(title) == true
  }
}
