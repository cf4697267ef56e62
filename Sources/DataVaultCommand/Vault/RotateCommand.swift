internal import ArgumentParser
internal import DataVault
internal import VaultedDatabase

/// `datavault rotate VAULT`.
struct RotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Make new keys for a vault, and drop slots.",
    discussion: """
      Takes what opens each slot that is to be kept; the others have to be dropped by name. Who had \
      the old keys, from a removed slot or an older copy of the file, reads nothing that is \
      written from now on. The messages keep their key: datavault queue rekey changes that.
      """)

  @OptionGroup var vault: VaultArgument
  @Option(
    name: .customLong("drop"),
    help: ArgumentHelp("Drop this slot; may be repeated.", valueName: "slot"))
  var dropped: [String] = []
  @OptionGroup var home: HomeOptions
  @OptionGroup var secrets: KeptSecretOptions

  func run() async throws {
    let id = try vault.id()
    let vault = try await Vault.get(id, in: home.home().store)
    let status = try await vault.status()
    guard status.isSecured else {
      throw CommandFailure(
        .policy, "vault \(id) opens with the publicly known password: new keys would not secure it",
        hint: id.securingHint)
    }
    let keepsPassword = status.slots.contains {
      $0.kind == .password && !dropped.contains($0.identifier)
    }
    let secrets = try secrets.read(for: id, needsPassword: keepsPassword)
    guard secrets.count > 0 else {
      throw CommandFailure(
        .notPermitted, "nothing was given that opens vault \(id)",
        hint: "give --recovery-code-file, --slot-key-file or --password-file for each slot to keep")
    }
    try await vault.unlock(with: secrets.copy(at: 0))
    try await vault.rotate(keeping: secrets, dropping: dropped)
    try confirm("vault \(id) has new keys")
  }
}
