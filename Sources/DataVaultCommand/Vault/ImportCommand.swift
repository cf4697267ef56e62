internal import ArgumentParser
internal import DataVault
internal import SystemPackage
internal import VaultedDatabase

/// `datavault import FILE [--as VAULT]`.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Make a vault of an exported file; none is ever replaced.",
    discussion: """
      The password stays, and is needed only with --as: the vault's name is sealed with its \
      contents.
      """)

  @Argument(help: ArgumentHelp("What datavault export wrote.", valueName: "file"))
  var file: String
  @Option(
    name: .customLong("as"), help: ArgumentHelp("Give the vault another name.", valueName: "vault"))
  var name: String?
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    guard !file.isEmpty else { throw CommandFailure(.usage, "the name of the file is empty") }
    let name = try name.map { try VaultID($0) }
    let home = try home.home()
    let exported = try await Vault.exported(at: FilePath(file))
    let id = name ?? exported.id
    // Before anybody types a password for nothing.
    guard try await !Vault.exists(id, in: home.store) else {
      throw CommandFailure(
        .exists, "vault \(id) exists already in \(home.path)",
        hint: "import it under another name with --as, or delete the other one first")
    }
    if id == exported.id {
      try await Vault.importVault(exported, into: home.store)
    } else {
      let isOpen = !exported.isSecured && !credentials.areGiven
      _ = try await Vault.importVault(
        exported, as: id, with: isOpen ? .password(.standard) : credentials.read(for: exported.id),
        into: home.store)
    }
    try confirm("imported vault \(id)")
  }
}
