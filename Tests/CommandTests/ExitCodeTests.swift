import Foundation
import TestSupport
import Testing

/// Each error code has one row in the command's tables and one in `docs/reference/exit-codes.md`.
@Suite struct ExitCodeTests {
  /// Where each error type declares its codes.
  private static let declarations = [
    "VaultError": "Sources/DataVault/Vault/VaultError.swift",
    "EngineError": "Sources/MessagingQueue/Engine/EngineError.swift",
    "VaultedDatabaseError": "Sources/VaultedDatabase/VaultedDatabaseError.swift",
    "SealedDatabaseError": "Sources/SealedVFS/SealedDatabaseError.swift",
    "ApplicationStoreError": "Sources/ApplicationStore/ApplicationStoreError.swift",
    "AccessError": "Sources/AccessControl/AccessError.swift",
    "ReplicationError": "Sources/QueueReplication/ReplicationError.swift",
    "LogError": "Sources/JetStreamLog/LogError.swift",
    "ServerError": "Sources/MessagingServer/Server/ServerError.swift",
  ]

  /// Where the commands' tables are.
  private static let sources = [
    "Sources/CommandInterface/Output/ExitStatus.swift",
    "Sources/DataVaultServerCommand/ExitCodes.swift",
  ]

  private static func part(of text: String, from start: String, to end: String) throws -> Substring
  {
    let rest = try #require(text.split(separator: start, maxSplits: 1).dropFirst().first)
    return rest.split(separator: end, maxSplits: 1)[0]
  }

  /// The rows of the page's table for an error type: code and exit code.
  private static func rows(of type: String) throws -> [String: String] {
    let page = try Repository.text("docs/reference/exit-codes.md")
    return Dictionary(
      uniqueKeysWithValues: try part(of: page, from: "### `\(type)`", to: "\n### ")
        .matches(of: /(?m)^\| `(\w+)` \| ([^|]+) \|/)
        .map { (String($0.output.1), String($0.output.2)) })
  }

  /// The rows of the command's table for an error type: code and exit code.
  private static func exitCodes(of type: String) throws -> [String: String] {
    let source = try sources.map { try Repository.text($0) }.joined()
    var numbers = Dictionary(
      uniqueKeysWithValues: source.matches(of: /case (\w+) = (\d+)/)
        .map { (".\($0.output.1)", String($0.output.2)) })
    numbers["nil"] = "beneath"
    return try Dictionary(
      uniqueKeysWithValues: part(of: source, from: "extension \(type):", to: "\n  ]")
        .matches(of: /\.(\w+): (\.\w+|nil)\b/)
        .map { (String($0.output.1), try #require(numbers[String($0.output.2)])) })
  }

  @Test(arguments: declarations.keys.sorted())
  func `each error code has one row, with the exit code that the command gives it`(
    type: String
  ) throws {
    let path = try #require(Self.declarations[type])
    let declared = try Repository.text(path).matches(of: /static let (\w+) = (?:Code|Self)\(/)
      .map { String($0.output.1) }
    let exitCodes = try Self.exitCodes(of: type)
    #expect(declared.count > 3)
    #expect(Set(exitCodes.keys) == Set(declared))
    #expect(try Self.rows(of: type) == exitCodes)
  }

  @Test func `the page lists each exit code with its name`() throws {
    let source = try Repository.text("Sources/CommandInterface/Output/ExitStatus.swift")
    let page = try Repository.text("docs/reference/exit-codes.md")
    let named = source.matches(of: /case (\w+) = (\d+)/).map {
      "| \($0.output.2) | `\($0.output.1)` |"
    }
    #expect(named.count == 9 && named.allSatisfy { page.contains($0) })
  }
}
