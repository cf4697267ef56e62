internal import ArgumentParser
internal import DataVault
internal import SealedVFS
internal import SystemPackage
internal import VaultedDatabase

/// `datavault slots`.
struct SlotsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slots", abstract: "What opens a vault: a password, recovery codes, key files.",
    discussion: "Each opens the vault alone. The last cannot be removed.",
    subcommands: [SlotsListCommand.self, SlotsAddCommand.self, SlotsRemoveCommand.self])
}

/// `datavault slots list VAULT`.
struct SlotsListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List what opens a vault, without opening it.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let vault = try await Vault.get(vault.id(), in: home.home().store)
    let slots = try await vault.status().slots
    try report.print(SlotsReport(vault.id, slots)) {
      var table = Table(header: ["SLOT", "ITERATIONS"])
      for slot in slots {
        table.append([slot.identifier, slot.iterationCount.map(String.init) ?? "-"])
      }
      return table.text
    }
  }
}

/// The report of `slots list` as JSON.
private struct SlotsReport: Encodable {
  struct Slot: Encodable {
    let slot: String
    let kind: String
    /// Absent for a password.
    let name: String?
    /// Present for a password.
    let iterationCount: Int?
  }

  let vault: String
  let slots: [Slot]

  init(_ id: VaultID, _ slots: [VaultStatus.Slot]) {
    vault = id.rawValue
    self.slots = slots.map {
      Slot(
        slot: $0.identifier, kind: $0.kind.rawValue, name: $0.name,
        iterationCount: $0.iterationCount)
    }
  }
}

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

/// `datavault slots remove VAULT SLOT`.
struct SlotsRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Let a password, recovery code or key file open a vault no more.",
    discussion: """
      The vault keeps its keys: who opened it before, or has an older copy of its file, may hold \
      them. datavault rotate makes new ones.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(
    help: ArgumentHelp(
      "The slot, as slots list shows it, or its name alone.", valueName: "slot"))
  var slot: String

  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let access = VaultAccess(home: try home.home(), credentials: credentials)
    let vault = try await access.open(vault.id())
    try await vault.removeSlot(named: slot)
    try confirm("removed slot \(slot) of vault \(vault.id)")
  }
}

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
