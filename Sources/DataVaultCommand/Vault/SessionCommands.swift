internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import DesktopKeyring
internal import VaultedDatabase

/// The command `datavault unlock VAULT`.
struct UnlockCommand: AsyncParsableCommand, VaultAccess {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Start a session: open a vault without its password for a limited time.",
    discussion: """
      Examples:
        datavault unlock messaging --for 8h
        datavault unlock messaging --remember
        datavault unlock messaging --keyring

      Until the session ends, commands and engines of the same user open the vault without its \
      password. The session ends after the given time, or with 'datavault lock'. The session's \
      key is in the user's keyring in the kernel. Where the kernel refuses that, as in many \
      containers, each running process of the home receives it by a socket, until that process \
      ends. The command needs the password even if a session exists, and replaces that session.

      With --remember, the command also makes a key slot for the desktop's keyring, with a new \
      random key, and puts the key into the keyring. Then --keyring opens the vault instead of the \
      password, in every command. 'datavault forget' undoes it.
      """)

  @OptionGroup var vault: VaultArgument

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("How long the session lasts, from 1s to 366d.", valueName: "time"))
  var duration = DurationArgument(.seconds(900), "15m")

  @Flag(
    name: .customLong("remember"),
    help: "Put a new key of the vault into the desktop's keyring, for --keyring.")
  var remembers = false

  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    guard (VaultSession.minimumDuration...VaultSession.maximumDuration).contains(duration.duration)
    else {
      throw ValidationError("--for must be at least 1 second and at most 366 days")
    }
  }

  func run() async throws {
    let id = try vault.id()
    guard try await Vault.get(id, in: home().store).status().isSecured else {
      throw CommandFailure(
        .policy, "vault '\(id)' is not secured: it opens without a session",
        hint: id.securingHint)
    }
    try await requirePlaceOfSession(of: id)
    // A session must not extend itself: the command needs the password.
    let vault = try await open(id, usesSession: false)
    let session = try await vault.openSession(for: duration.duration)
    if remembers { try await remember(vault) }
    for problem in session.problems { StandardError.warn(problem) }
    let processes = session.processIDs.map(String.init).joined(separator: ", ")
    var text = "unlocked vault '\(id)' for \(duration.defaultValueDescription)"
    if !session.processIDs.isEmpty { text += ", in process \(processes)" }
    if !session.isInKernel { text += " alone" }
    if remembers { text += "; from now on, --keyring opens it too" }
    try confirm(text)
  }

  private func remember(_ vault: Vault) async throws {
    let keyring = try home().keyring
    do throws(VaultError) {
      try await vault.remember(in: keyring)
    } catch {
      throw CommandFailure(
        error.exitStatus, "unlocked vault '\(vault.id)', but did not remember it: \(error.message)",
        hint: error.hint)
    }
  }

  /// Throws if neither the kernel nor a process could take a session, before the command asks for a password.
  private func requirePlaceOfSession(of id: VaultID) async throws {
    do throws(VaultError) {
      try VaultSession.checkAvailability()
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      let (processes, problems) = try await SessionProcess.survey(id, in: home().store)
      if processes.isEmpty {
        for problem in problems { StandardError.warn(problem) }
        throw error
      }
    }
  }
}

/// The command `datavault lock VAULT`, or `datavault lock --all`.
struct LockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "End a session started with 'unlock'.",
    discussion: """
      Programs that opened the vault through the session lock it within a second. Programs that \
      opened it with a password keep it open: the command names them. It also reaches the \
      processes of the home that received the session by a socket.
      """)

  @Argument(help: "The vault whose session to end.", completion: Completion.vaults)
  var vault: String?

  @Flag(
    help:
      "End all sessions of this user, in all homes; of those that processes hold, those of this home."
  ) var all = false

  @OptionGroup var home: HomeOptions

  func validate() throws {
    guard (vault == nil) == all else { throw ValidationError("give either a vault or --all") }
  }

  func run() async throws {
    let id = try vault.map { text throws(VaultError) in try VaultID(text) }
    let store = try home.home().store
    let ended = try await VaultSession.end(id, in: store)
    for process in ended.processes where process.isServingWithoutSession {
      StandardError.warn(
        "process \(process.processID) still has the messages open: it was opened with a password, or its "
          + "session has expired; to close them, stop it")
    }
    guard let id else {
      return try confirm("ended \(ended.count) session\(ended.count == 1 ? "" : "s")")
    }
    if ended.count > 0 { return try confirm("locked vault '\(id)'") }
    // A session can outlive its vault. Without a session, a vault that does not exist is an error.
    _ = try await Vault.get(id, in: store)
    try confirm("vault '\(id)' has no session")
  }
}
