import Foundation
import TestSupport
import Testing

@Suite struct DocumentationTests {
  @Test(arguments: [Program.datavault, Program.datavaultd])
  func `the page of a program in docs/reference has the help of each command`(
    program: String
  ) throws {
    let script = Repository.path("scripts/command-reference")
    try Program.run(script, ["--check", program]).expect(0)
  }

  @Test(arguments: [
    "docs/development/testing.md", "docs/explanation/supdatavault.md",
    "docs/explanation/queue-semantics.md",
  ])
  func `every test that a page names exists`(page: String) throws {
    let sources = try FileManager.default.subpathsOfDirectory(atPath: Repository.path("Tests"))
      .filter { $0.hasSuffix(".swift") }.map { try Repository.text("Tests/\($0)") }
    let tests = Set(
      sources.flatMap { $0.split(separator: "func `").dropFirst().map { $0.prefix { $0 != "`" } } })
    // Quoted names in the rows of tables.
    let names = try Repository.text(page).split(separator: "\n")
      .filter { $0.hasPrefix("| ") }
      .flatMap { $0.matches(of: /"([^"]+)"/).map { String($0.output.1) } }
    #expect(names.count > 10)
    for name in names {
      #expect(tests.contains(name[...]), "no test is named: \(name)")
    }
  }

  @Test func `the diagram in docs/explanation/architecture.md has the arrows of Package.swift`()
    throws
  {
    let manifest = try Repository.text("Package.swift")
    let targets = manifest.matches(
      of: /(?:module\(\s*|executableTarget\(\s*name: )"(\w+)",(?:\s*dependencies:)?\s*\[([^\]]*)\]/)
    let modules = Set(targets.map { String($0.output.1) })
      .filter { FileManager.default.fileExists(atPath: Repository.path("Sources/\($0)")) }
    #expect(modules.count > 10)
    var declared: [String: Set<String>] = [:]
    for target in targets {
      let names = target.output.2.matches(of: /"(\w+)"/).map { String($0.output.1) }
      declared[String(target.output.1)] = modules.intersection(names)
    }
    var drawn: [String: Set<String>] = [:]
    let page = try Repository.text("docs/explanation/architecture.md")
    for arrow in page.matches(of: /(\w+) --> (\w+)/) {
      drawn[String(arrow.output.1), default: []].insert(String(arrow.output.2))
    }
    for module in modules {
      #expect(
        Self.reachable(from: module, drawn) == Self.reachable(from: module, declared), "\(module)")
    }
  }

  private static func reachable(
    from module: String, _ arrows: [String: Set<String>]
  ) -> Set<String> {
    (arrows[module] ?? []).reduce(into: []) {
      $0.formUnion(reachable(from: $1, arrows).union([$1]))
    }
  }
}
