internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import DesktopKeyring
internal import SealedVFS
internal import SystemPackage
internal import VaultedDatabase

/// The command `datavault slots`.
struct SlotsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "slots", abstract: "Manage passwords, recovery codes and key files.",
    discussion: "Each slot opens the vault alone. The last slot cannot be removed.",
    subcommands: [SlotsListCommand.self, SlotsAddCommand.self, SlotsRemoveCommand.self])
}

/// The command `datavault slots list VAULT`.
struct SlotsListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the slots of a vault, without opening it.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let vault = try await Vault.get(vault.id(), in: home.home().store)
    let slots = try await vault.status().slots
    try report.print(SlotsReport(vault.id, slots)) {
      table(
        ["SLOT", "ITERATIONS"],
        slots.map { [$0.identifier, $0.iterationCount.map(String.init) ?? "-"] })
    }
  }
}

/// The JSON report of `slots list`.
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
        slot: $0.identifier, kind: $0.kind.description, name: $0.name,
        iterationCount: $0.iterationCount)
    }
  }
}

/// The command `datavault slots add VAULT NAME`.
struct SlotsAddCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a recovery code or a key file.",
    discussion: """
      Examples:
        datavault slots add backup paper --recovery-code
        datavault slots add backup usb --new-slot-key-file usb.key

      The command writes a new recovery code to standard output, once: print it or write it down. \
      To set a password, use 'datavault change-password'.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(help: "The slot's name: 1 to 32 characters of a-z, 0-9, - and _.")
  var name: String

  @Flag(name: .customLong("recovery-code"), help: "Create a recovery code and print it.")
  var isRecoveryCode = false

  @Option(
    name: .customLong("new-slot-key-file"),
    help: ArgumentHelp(
      "Add a key file: 32 random bytes, readable only by its owner.", valueName: "file"),
    completion: .file())
  var newKeyFile: String?

  @Option(
    name: .customLong("new-slot-key-fd"),
    help: ArgumentHelp("Add a key file read from a file descriptor.", valueName: "n"))
  var newKeyDescriptor: Int32?

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    let count = [isRecoveryCode, newKeyFile != nil, newKeyDescriptor != nil].count { $0 }
    guard count == 1 else {
      throw ValidationError(
        "give exactly one of --recovery-code, --new-slot-key-file and --new-slot-key-fd")
    }
    try SecretRules.check(
      credentials.sources
        + SecretSource.given(files: [newKeyFile], [newKeyDescriptor]))
  }

  func run() async throws {
    let vault = try await open(vault.id())
    guard let newKey else { return try await addRecoveryCode(to: vault) }
    try await vault.addKeyFile(named: name, key: newKey.read())
    try confirm("added key file '\(name)' to vault '\(vault.id)'")
  }

  private func addRecoveryCode(to vault: Vault) async throws {
    let code = try await vault.addRecoveryCode(named: name)
    do {
      let output = OutputDescriptor.standardOutput
      try output.writeAll(code.text())
      try output.writeAll([UInt8(ascii: "\n")])
    } catch {
      // No one has seen the code, and no other copy exists.
      do {
        try await vault.removeSlot(named: "recovery:\(name)", of: code)
      } catch let removal {
        // Another command has removed it.
        if removal.code == .slotNotFound { throw error }
        throw CommandFailure(
          removal.exitStatus,
          "the recovery code was not written, and its slot 'recovery:\(name)' remains: "
            + removal.message,
          hint:
            "unless another command has added that slot since, run datavault slots remove \(vault.id) "
            + "recovery:\(name)")
      }
      throw error
    }
    try confirm("this code opens vault '\(vault.id)' and is not shown again: print it")
  }

  private var newKey: KeySource? {
    if let newKeyFile { return .file(FilePath(newKeyFile)) }
    return newKeyDescriptor.map(KeySource.descriptor)
  }
}

/// The command `datavault slots remove VAULT SLOT`.
struct SlotsRemoveCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a password, recovery code or key file.",
    discussion: """
      The vault keeps its keys. Someone who has opened the vault with this slot, or has the \
      slot's secret and an older copy of the vault, can still have them. To create new keys, run \
      'datavault rotate'.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(help: "The slot as 'slots list' shows it, or its name.")
  var slot: String

  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    let id = try vault.id()
    try confirmation.require("remove slot '\(slot)' of vault '\(id)'")
    let vault = try await open(id)
    try await vault.removeSlot(named: slot)
    if try await vault.status().slots.map(\.identifier) == [DesktopKeyring.slotIdentifier] {
      StandardError.warn(
        "only the key in the desktop's keyring now opens vault '\(id)', which is lost with the keyring; "
          + "run datavault slots add \(id) NAME --recovery-code")
    }
    try confirm("removed slot '\(slot)' of vault '\(vault.id)'")
  }
}

/// The command `datavault rotate VAULT`.
struct RotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Create new keys for a vault, and remove slots.",
    discussion: """
      Example:
        datavault rotate backup --unlock-key-file usb.key --drop recovery:paper

      Give the secret of each slot to keep, and name every other slot with --drop. Old keys, from \
      a removed slot or an older copy of the vault, do not open what is written afterwards. The \
      queue keeps its key. To change that key, run 'datavault queue rekey'.
      """)

  @OptionGroup var vault: VaultArgument
  @Option(
    name: .customLong("drop"),
    help: ArgumentHelp("Remove this slot. Can be repeated.", valueName: "slot"))
  var dropped: [String] = []
  @Flag(
    name: .customLong("require-secured"),
    help: "Refuse a vault with the publicly known password. This command always does.")
  var demandsSecured = false
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var secrets: KeptSecretOptions

  func run() async throws {
    let id = try vault.id()
    let home = try home.home()
    let vault = try await Vault.get(id, in: home.store)
    let status = try await vault.status()
    guard status.isSecured else {
      throw CommandFailure(
        .policy, "vault '\(id)' opens with the publicly known password: new keys do not secure it",
        hint: id.securingHint)
    }
    if !dropped.isEmpty {
      let slots = dropped.map { "'\($0)'" }.joined(separator: ", ")
      try confirmation.require("create new keys for vault '\(id)', and remove its slots \(slots)")
    }
    let keepsPassword = status.slots.contains {
      $0.kind == .password && !dropped.contains($0.identifier)
    }
    let secrets = try await secrets.read(for: vault, in: home, needsPassword: keepsPassword)
    guard secrets.count > 0 else {
      throw CommandFailure(
        .notPermitted, "no secret was given that opens vault '\(id)'",
        hint: "give --recovery-code-file, --unlock-key-file or --password-file for each slot")
    }
    try await vault.unlock(with: secrets.copy(at: 0))
    try await vault.rotate(keeping: secrets, dropping: dropped)
    try confirm("created new keys for vault '\(id)'")
  }
}
