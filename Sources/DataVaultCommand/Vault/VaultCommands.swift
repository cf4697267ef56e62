internal import ArgumentParser
internal import DataVault
internal import SystemPackage
internal import VaultedDatabase

/// `datavault list`.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Name the vaults, one a line.")

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let ids = try await Vault.list(in: home.home().store)
    try report.print(["vaults": ids.map(\.rawValue)]) {
      ids.map { "\($0)\n" }.joined()
    }
  }
}

/// `datavault create VAULT`.
struct CreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Make a vault that opens with a password of yours.")

  @OptionGroup var vault: VaultArgument
  @OptionGroup var home: HomeOptions
  @OptionGroup var newCredentials: NewCredentialOptions

  func run() async throws {
    let id = try vault.id()
    let home = try home.home()
    // Before anybody types a password for nothing.
    guard try await !Vault.exists(id, in: home.store) else {
      throw CommandFailure(
        .exists, "vault \(id) exists already in \(home.path)",
        hint: id == .messaging
          ? "datavault secure makes it yours, if it is not secured" : "choose another name")
    }
    if id == .messaging, try home.hasDatabase() {
      throw CommandFailure(
        .absent, "there are messages in \(home.path) already, under a key that this vault lacks",
        hint: "restore vaults/messaging.vault from a backup")
    }
    try await home.requireNoSession(of: id)
    _ = try await Vault.create(id, in: home.store, credentials: newCredentials.read(for: id))
    try confirm("made vault \(id)")
  }
}

/// `datavault delete VAULT`.
struct DeleteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete a vault and all it holds, without its password.")

  @OptionGroup var vault: VaultArgument
  @Flag(help: "Delete it although its database exists, which nothing can open afterwards.")
  var force = false
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let id = try vault.id()
    try await VaultedDatabase.deleteVault(id, of: home.home(), force: force)
    try confirm("deleted vault \(id)")
  }
}

/// `datavault export VAULT FILE`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write a vault into a new file, sealed as it is.",
    discussion: """
      No password is needed, and the same password opens the file: a backup, or the way to another \
      store. datavault import takes it in.
      """)

  @OptionGroup var vault: VaultArgument
  @Argument(help: ArgumentHelp("The new file; it must not exist.", valueName: "file"))
  var file: String
  @OptionGroup var home: HomeOptions

  func run() async throws {
    guard !file.isEmpty else { throw CommandFailure(.usage, "the name of the new file is empty") }
    let id = try vault.id()
    try await Vault.export(id, from: home.home().store, to: FilePath(file))
    try confirm("exported vault \(id) to \(file)")
  }
}

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
