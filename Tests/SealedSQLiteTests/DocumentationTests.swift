import Foundation
import SealedVFS
import TestSupport
import Testing

/// The documentation of SealedSQLite; `make docs` builds it, and its program as a separate package.
@Suite struct DocumentationTests {
  @Test func `the documented program is compiled, and has at most ten lines`() throws {
    let page = try Repository.text("Sources/SealedSQLite/SealedSQLite.docc/SealedSQLite.md")
    let program = try Repository.text("Tests/Support/FirstProgram/main.swift")
    #expect(page.contains("```swift\n\(program)```\n"))
    let lines = program.split(separator: "\n").filter { !$0.hasPrefix("//") }
    #expect(lines.count <= 10)
  }

  /// The examples are a target on which the tests depend.
  @Test(arguments: ["MovingFromAPlainDatabase", "MovingFromSQLCipher"])
  func `the code in the migration articles is compiled`(name: String) throws {
    let article = try Repository.text("Sources/SealedSQLite/SealedSQLite.docc/\(name).md")
    let example = try Repository.text("Tests/Support/MovingExamples/\(name).swift")
    #expect(article.contains("```swift\n\(example)```\n"))
  }

  @Test func `the article on errors lists every error code`() throws {
    let article = try Repository.text("Sources/SealedSQLite/SealedSQLite.docc/Errors.md")
    let codes = try Repository.text("Sources/SealedVFS/SealedDatabaseError.swift")
      .matches(of: /static let (\w+) = Code/).map { String($0.output.1) }
    #expect(codes.count > 20)
    #expect(codes.filter { !article.contains("`\($0)`") } == [])
  }

  @Test func `the documented program creates an encrypted database`() throws {
    let folder = ScratchFolder()
    try folder.file("notes.key", (0..<32).map { _ in UInt8.random(in: 0...255) })

    let program = try Program.run(Program.built("FirstProgram"), in: folder.url.path)
    #expect(program.status == 0)
    #expect(program.text == "[\"for my eyes only\"]\n")

    guard case .sealed = try SealedVFS.inspect(folder("notes.db")) else {
      Issue.record("the program's database is not sealed")
      return
    }
    for file in try folder.names() {
      #expect(try !folder.bytes(file).contains(Array("my eyes".utf8)), "\(file) holds plaintext")
    }
  }
}
