import DataVault
import Foundation
import MessagingQueue
import SystemPackage
import Testing
import VaultCrypto
import VaultedDatabase

@Suite struct ReadmeTests {
  private static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  @Test func `the README shows the example that is compiled here`() throws {
    let readme = try String(
      contentsOf: Self.repository.appendingPathComponent("README.md"), encoding: .utf8)
    let example = try String(
      contentsOf: Self.repository.appendingPathComponent(
        "Tests/MessagingQueueTests/ReadmeExample.swift"), encoding: .utf8)
    #expect(readme.contains("```swift\n\(example)```\n"))
  }

  @Test func `the readme's example runs`() async throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("readme-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let home = DataVaultHome(FilePath(folder.path))
    let password = Array("correct horse".utf8)
    try await VaultedDatabase.secure(
      home, with: Credentials(password: SecretBytes(copying: password)))

    try await publishAndReceive(in: home, password: SecretBytes(copying: password))

    let vault = try await Vault.get(.messaging, in: home.store)
    try await vault.unlock(with: Credentials(password: SecretBytes(copying: password)))
    let engine = try await MessagingEngine.start(home, vault: vault)
    #expect(try await engine.statistics().messageCount == 0)
    try await engine.stop()
  }
}
