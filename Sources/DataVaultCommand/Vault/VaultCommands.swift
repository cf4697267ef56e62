internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import SystemPackage
internal import VaultedDatabase

/// The command `datavault list`.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List vaults, one per line.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let ids = try await Vault.list(in: home.home().store)
    try report.print(["vaults": ids.map(\.rawValue)]) {
      ids.map { "\($0)\n" }.joined()
    }
  }
}

/// The command `datavault create VAULT`.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a password-protected vault.",
    discussion: """
      Example:
        datavault create backup --new-password-file password.txt
      """)

  @OptionGroup var vault: VaultArgument
  @OptionGroup var newCredentials: NewCredentialOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let id = try vault.id()
    let home = try home.home()
    // Checked before the command asks for a password.
    guard try await !Vault.exists(id, in: home.store) else {
      throw CommandFailure(
        .exists, "vault '\(id)' already exists in \(home.path)",
        hint: id == .messaging
          ? "if it is not secured, run datavault secure" : "choose another name")
    }
    if id == .messaging, try home.hasDatabase() {
      throw CommandFailure(
        .notFound, "a queue already exists in \(home.path): a new vault would not have its key",
        hint: "restore vaults/messaging.vault from a backup")
    }
    try await home.requireNoSession(of: id)
    _ = try await Vault.create(id, in: home.store, credentials: newCredentials.read(for: id))
    try confirm("created vault '\(id)'")
  }
}

/// The command `datavault delete VAULT`.
struct DeleteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete a vault and its items. No password is needed.")

  @OptionGroup var vault: VaultArgument
  @Flag(help: "Delete the vault even if its database exists. The database cannot be opened again.")
  var force = false
  @OptionGroup var confirmation: ConfirmationOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let id = try vault.id()
    try confirmation.require("delete vault '\(id)' and its items")
    try await VaultedDatabase.deleteVault(id, of: home.home(), force: force)
    try confirm("deleted vault '\(id)'")
  }
}

/// The command `datavault export VAULT FILE`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Copy a vault to a new file. It stays encrypted.",
    discussion: """
      Example:
        datavault export messaging messaging.backup

      The command needs no password, and the same password opens the file. Use the file as a \
      backup, or to move the vault to another store with 'datavault import'.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(help: "The new file. It must not exist.", completion: .file()) var file: String
  @OptionGroup var home: HomeOptions

  func run() async throws {
    guard !file.isEmpty else { throw CommandFailure(.usage, "the name of the new file is empty") }
    let id = try vault.id()
    try await Vault.export(id, from: home.home().store, to: FilePath(file))
    try confirm("exported vault '\(id)' to \(file)")
  }
}

/// The command `datavault import FILE [--as VAULT]`.
struct ImportCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Import a vault. Never overwrites an existing vault.",
    discussion: """
      Examples:
        datavault import messaging.backup
        datavault import messaging.backup --as copy

      The vault keeps its password. The command needs the password only with --as, because the \
      vault's id is encrypted together with its contents.
      """)

  @Argument(
    help: "A file written by 'datavault export', or from vaults/ of a home.", completion: .file())
  var file: String
  @Option(
    name: .customLong("as"),
    help: ArgumentHelp(
      "Import the vault under this id. Needs the password.", valueName: "vault"))
  var name: String?
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func run() async throws {
    guard !file.isEmpty else { throw CommandFailure(.usage, "the name of the file is empty") }
    let name = try name.map { try VaultID($0) }
    let home = try home()
    let exported = try await Vault.loadExportedVault(at: FilePath(file))
    let id = name ?? exported.id
    // Before the command asks for a password.
    if try credentials.requiresSecuredVault(), !exported.isSecured {
      throw CommandFailure(
        .policy, "\(file) opens with the publicly known password, and a secured vault is required",
        hint: "export the vault after it was secured")
    }
    guard try await !Vault.exists(id, in: home.store) else {
      throw CommandFailure(
        .exists, "vault '\(id)' already exists in \(home.path)",
        hint: "import it under another name with --as, or delete the existing vault first")
    }
    try await home.requireNoSession(of: id)
    if id == exported.id {
      try await Vault.importVault(exported, into: home.store)
    } else {
      let isOpen = !exported.isSecured && !credentials.areGiven
      _ = try await Vault.importVault(
        exported, as: id,
        with: isOpen
          ? .password(.standard) : credentials.read(for: exported.id, in: home),
        into: home.store)
    }
    try confirm("imported vault '\(id)'")
  }
}
