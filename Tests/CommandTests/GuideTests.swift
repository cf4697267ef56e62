import Foundation
import TestSupport
import Testing

/// The tutorial and the how-to pages: `scripts/run-guides` executes their shell blocks and compares the outputs.
@Suite struct GuideTests {
  static let pages = ["docs/tutorial", "docs/how-to"].flatMap { folder in
    let names = try? FileManager.default.contentsOfDirectory(atPath: Repository.path(folder))
    return (names ?? []).sorted()
      .filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
  }

  @Test func `tutorial and how-to pages are found`() {
    #expect(Self.pages.count > 10)
  }

  @Test(arguments: pages)
  func `the shell blocks of a page run and print what the page says`(page: String) throws {
    let guide = try Program.run(
      Repository.path("scripts/run-guides"), [Program.datavault, Repository.path(page)],
      environment: Program.commandEnvironment)
    #expect(guide.status == 0, "\(guide.text)\(guide.errors)")
  }
}
