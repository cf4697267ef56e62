internal import ArgumentParser
internal import DataVault
internal import SealedVFS
internal import SystemPackage
internal import VaultedDatabase

/// `datavault slots add VAULT NAME`.
struct SlotsAddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Let a recovery code or a key file open a vault too.",
    discussion: """
      A recovery code is made and written to standard output, once: print it. A password is set \
      with datavault change-password.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(help: ArgumentHelp("The new slot: a-z, 0-9, - and _.", valueName: "name"))
  var name: String

  @Flag(name: .customLong("recovery-code"), help: "Make a recovery code.")
  var isRecoveryCode = false

  @Option(
    name: .customLong("new-slot-key-file"),
    help: ArgumentHelp(
      "Take a key file: 32 random bytes that only their owner may read.", valueName: "file"))
  var newKeyFile: String?

  @Option(
    name: .customLong("new-slot-key-fd"),
    help: ArgumentHelp("Take a key file from an open file descriptor.", valueName: "n"))
  var newKeyDescriptor: Int32?

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    let count = [isRecoveryCode, newKeyFile != nil, newKeyDescriptor != nil].count { $0 }
    guard count == 1 else {
      throw ValidationError(
        "give one of --recovery-code, --new-slot-key-file and --new-slot-key-fd")
    }
    try DescriptorRules.check(credentials.descriptors + [newKeyDescriptor].compactMap { $0 })
  }

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let vault = try await access.open(vault.id())
    guard let newKey else { return try await addRecoveryCode(to: vault) }
    try await vault.addKeyFile(named: name, key: newKey.read())
    try confirm("the key file opens vault \(vault.id)")
  }

  private func addRecoveryCode(to vault: Vault) async throws {
    let code = try await vault.addRecoveryCode(named: name)
    do {
      let output = OutputDescriptor.standardOutput
      try output.writeAll(code.text())
      try output.writeAll([UInt8(ascii: "\n")])
    } catch {
      // Nobody has seen it, and nobody ever will.
      try await vault.removeSlot(named: name)
      throw error
    }
    try confirm("this opens vault \(vault.id) alone, and is not shown again: print it")
  }

  private var newKey: KeySource? {
    if let newKeyFile { return .file(FilePath(newKeyFile)) }
    return newKeyDescriptor.map(KeySource.descriptor)
  }
}
