internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault queue rekey`.
struct RekeyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Seal all messages anew under a new key.",
    discussion: """
      The vault makes and keeps the key; the password stays. Nobody may have the messages open \
      meanwhile. If it is interrupted, the next opening finishes it.
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let home = try home.home()
    let vault = try await VaultAccess(home: home, credentials: credentials).open(.messaging)
    let line = ProgressLine("sealing")
    defer { line.clear() }
    try await VaultedDatabase.changeKey(of: home, vault: vault) { line.show($0) }
    try confirm("sealed the messages under a new key")
  }
}
