import Foundation
import Testing

/// `docs/reference/exit-codes.md` has one row for each error code, with the exit code that the command gives it.
@Suite struct ExitCodeTests {
  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Where each error type declares its codes.
  private static let declarations = [
    "VaultError": "Sources/DataVault/Vault/VaultError.swift",
    "EngineError": "Sources/MessagingQueue/Engine/EngineError.swift",
    "VaultedDatabaseError": "Sources/VaultedDatabase/VaultedDatabaseError.swift",
    "SealedDatabaseError": "Sources/SealedSQLite/SealedDatabaseError.swift",
    "SealedFileError": "Sources/SealedVFS/SealedFileError.swift",
  ]

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
  }

  /// The rows of the page's table for an error type: code and exit code.
  private static func rows(of type: String) throws -> [String: String] {
    let page = try text("docs/reference/exit-codes.md")
    let start = try #require(page.range(of: "### `\(type)`")).upperBound
    let end = page.range(of: "\n### ", range: start..<page.endIndex)?.lowerBound ?? page.endIndex
    return Dictionary(
      uniqueKeysWithValues: page[start..<end].matches(of: /(?m)^\| `(\w+)` \| ([^|]+) \|/)
        .map { (String($0.output.1), String($0.output.2)) })
  }

  /// The exit codes that `CommandFailure` gives to the codes of an error type; `default` for all others.
  private static func exitCodes(of type: String) throws -> [String: String] {
    let source = try text("Sources/DataVaultCommand/Output/CommandFailure.swift")
    let numbers = Dictionary(
      uniqueKeysWithValues: source.matches(of: /case (\w+) = (\d+)/)
        .map { (String($0.output.1), String($0.output.2)) })
    let start = try #require(
      source.range(of: #"func status\(of \w+: \#(type)(\.Code)?\)"#, options: .regularExpression)
    ).upperBound
    let end = try #require(source.range(of: "\n  }", range: start..<source.endIndex)).lowerBound
    var codes: [String: String] = [:]
    for row in source[start..<end].matches(of: /case ((?:\.\w+[,\s]*)+):\s*\.(\w+)/) {
      for code in row.output.1.matches(of: /\.(\w+)/) {
        codes[String(code.output.1)] = numbers[String(row.output.2)]
      }
    }
    if source[start..<end].contains("default: .inputOutput") { codes["default"] = "74" }
    return codes
  }

  @Test(arguments: declarations.keys.sorted())
  func `each error code has one row, with the exit code that the command gives it`(
    type: String
  ) throws {
    let path = try #require(Self.declarations[type])
    let declared = try Self.text(path).matches(of: /static let (\w+) = (?:Code|Self)\(/)
      .map { String($0.output.1) }
    let rows = try Self.rows(of: type)
    #expect(declared.count > 10)
    #expect(Set(rows.keys) == Set(declared))
    let exitCodes = try Self.exitCodes(of: type)
    #expect(exitCodes.count > 2)
    for (code, exitCode) in rows where Int(exitCode) != nil {
      #expect(exitCodes[code] ?? exitCodes["default"] == exitCode, "\(code)")
    }
    for (code, exitCode) in exitCodes where code != "default" {
      #expect(rows[code] == exitCode, "\(code)")
    }
  }
}
