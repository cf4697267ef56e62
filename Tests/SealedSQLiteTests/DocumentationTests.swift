import Foundation
import SealedVFS
import SystemPackage
import Testing

/// The documentation of SealedSQLite; `make docs` builds it, and its program as a separate package.
@Suite struct DocumentationTests {
  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
  }

  @Test func `the documented program is compiled, and has at most ten lines`() throws {
    let page = try Self.text("Sources/SealedSQLite/SealedSQLite.docc/SealedSQLite.md")
    let program = try Self.text("Tests/Support/FirstProgram/main.swift")
    #expect(page.contains("```swift\n\(program)```\n"))
    let lines = program.split(separator: "\n").filter { !$0.hasPrefix("//") }
    #expect(lines.count <= 10)
  }

  /// The examples are a target on which the tests depend.
  @Test(arguments: ["MovingFromAPlainDatabase", "MovingFromSQLCipher"])
  func `the code in the migration articles is compiled`(name: String) throws {
    let article = try Self.text("Sources/SealedSQLite/SealedSQLite.docc/\(name).md")
    let example = try Self.text("Tests/Support/MovingExamples/\(name).swift")
    #expect(article.contains("```swift\n\(example)```\n"))
  }

  @Test func `the article on errors lists every error code`() throws {
    let article = try Self.text("Sources/SealedSQLite/SealedSQLite.docc/Errors.md")
    let codes = try Self.text("Sources/SealedVFS/SealedDatabaseError.swift")
      .matches(of: /static let (\w+) = Code/).map { String($0.output.1) }
    #expect(codes.count > 20)
    #expect(codes.filter { !article.contains("`\($0)`") } == [])
  }

  @Test func `the documented program creates an encrypted database`() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("first-page-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let key = folder.appendingPathComponent("notes.key")
    try Data((0..<32).map { _ in UInt8.random(in: 0...255) }).write(to: key)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key.path)

    let program = Process()
    program.executableURL = Bundle.main.bundleURL.appendingPathComponent("FirstProgram")
    program.currentDirectoryURL = folder
    let output = Pipe()
    program.standardOutput = output
    try program.run()
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    program.waitUntilExit()
    #expect(program.terminationStatus == 0)
    #expect(String(decoding: printed, as: UTF8.self) == "[\"for my eyes only\"]\n")

    let database = FilePath(folder.appendingPathComponent("notes.db").path)
    guard case .sealed = try SealedVFS.inspect(database) else {
      Issue.record("the program's database is not sealed")
      return
    }
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
      let bytes = try Data(contentsOf: folder.appendingPathComponent(file))
      #expect(bytes.range(of: Data("my eyes".utf8)) == nil, "\(file) holds plaintext")
    }
  }
}
