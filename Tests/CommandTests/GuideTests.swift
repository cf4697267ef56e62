import Foundation
import Testing

/// The tutorial and the how-to pages: `scripts/run-guides` executes their shell blocks and compares the outputs.
@Suite struct GuideTests {
  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  static let pages = ["docs/tutorial", "docs/how-to"].flatMap { folder in
    let path = repository.appendingPathComponent(folder).path
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
      .filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
  }

  @Test func `tutorial and how-to pages are found`() {
    #expect(Self.pages.count > 10)
  }

  @Test(arguments: pages)
  func `the shell blocks of a page run and print what the page says`(page: String) throws {
    let outputs = try ScratchFolder()
    let process = Process()
    process.executableURL = Self.repository.appendingPathComponent("scripts/run-guides")
    process.arguments = [Tool.path, Self.repository.appendingPathComponent(page).path]
    let path = try outputs.file("output", [])
    process.standardOutput = FileHandle(forWritingAtPath: path)
    process.standardError = process.standardOutput
    process.standardInput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    let text = String(decoding: try outputs.bytes("output"), as: UTF8.self)
    #expect(process.terminationStatus == 0, "\(text)")
  }
}
