import DataVault
import MessagingQueue
import TestSupport
import Testing
import VaultedDatabase

@Suite struct ReadmeTests {
  @Test func `the README shows the example that is compiled here`() throws {
    let readme = try Repository.text("README.md")
    let example = try Repository.text("Tests/MessagingQueueTests/ReadmeExample.swift")
    #expect(readme.contains("```swift\n\(example)```\n"))
  }

  @Test func `the readme's example runs`() async throws {
    let folder = ScratchFolder()
    let home = DataVaultHome(folder("home"))
    defer { withExtendedLifetime(folder) {} }
    try await VaultedDatabase.secure(home, with: credentials("correct horse"))

    try await publishAndReceive(in: home, password: secret("correct horse"))

    let vault = try await Vault.get(.messaging, in: home.store)
    try await vault.unlock(with: credentials("correct horse"))
    let engine = try await MessagingEngine.start(home, vault: vault)
    #expect(try await engine.statistics().messageCount == 0)
    try await engine.stop()
  }
}
