internal import ArgumentParser
internal import DataVault
internal import FileLayer
internal import SystemPackage
internal import VaultedDatabase

/// The options of the commands that open a vault or the queue.
struct AccessOptions: ParsableArguments {
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func home() throws(CommandFailure) -> DataVaultHome { try homeOptions.home() }

  /// Opens and unlocks a vault.
  ///
  /// If an option names a source, the vault opens with that source and no other. Without one, a
  /// secured vault opens through its session, otherwise the command asks at the terminal. A vault
  /// that is not secured opens with the publicly known credentials, unless a secured vault is
  /// required.
  ///
  /// - Parameters:
  ///   - toChangePassword: whether to accept a password that the policy no longer allows.
  ///   - usesSession: whether a session of `datavault unlock` can replace the password.
  func open(
    _ id: VaultID, toChangePassword: Bool = false, usesSession: Bool = true
  ) async throws -> Vault {
    // Warns before long work starts, such as following a queue.
    defer { MemoryWarning.giveOnce() }
    let vault = try await Vault.get(id, in: home().store)
    // A new password is what secures a vault.
    if !toChangePassword, try credentials.requiresSecuredVault(),
      try await !vault.status().isSecured
    {
      throw CommandFailure(
        .policy,
        "vault '\(id)' opens with the publicly known password, and a secured vault is required",
        hint: id.securingHint)
    }
    func unlock(with secret: borrowing VaultSecret) async throws {
      if toChangePassword {
        try await vault.unlockToChangePassword(with: secret)
      } else {
        try await vault.unlock(with: secret)
      }
    }
    if credentials.areGiven {
      try await unlock(with: credentials.read(for: id))
      return vault
    }
    let status = try await vault.status()
    if status.isSecured {
      if usesSession, try await vault.unlockWithSession() { return vault }
      guard status.slots.contains(where: { $0.kind == .password }) else {
        if status.slots.contains(where: { $0.kind == .recoveryCode }) {
          try await unlock(with: SlotSecretSource.recoveryCodePrompt(for: id).read())
          return vault
        }
        throw CommandFailure(
          .notPermitted, "vault '\(id)' has neither a password nor a recovery code to ask for",
          hint: "give --unlock-key-file FILE or --unlock-key-fd N")
      }
      try await unlock(with: credentials.read(for: id))
      return vault
    }
    guard try await home().liveSession(of: id) == nil else {
      throw CommandFailure(
        .policy,
        "vault '\(id)' opens with the publicly known password, but a session names a secured one",
        hint: "restore the vault that was replaced, or end the session with datavault lock \(id)")
    }
    try await unlock(with: .password(.standard))
    StandardError.warn(
      "vault '\(id)' is not secured: it opens with the publicly known password; \(id.securingHint)")
    return vault
  }
}

extension DataVaultHome {
  /// Whether the queue's database exists.
  func hasDatabase() throws -> Bool {
    // A log or a journal shows that there was a database.
    try ["", "-wal", "-journal"].contains {
      try fileSystem.status(of: FilePath(databasePath.string + $0)) != nil
    }
  }

  /// Throws if a session of the vault exists: the vault existed, and must not be created again.
  ///
  /// Called before a command creates a vault. The file system of the home might be unmounted.
  func requireNoSession(of id: VaultID) async throws {
    guard try await liveSession(of: id) != nil else { return }
    throw CommandFailure(
      .notFound,
      "vault '\(id)' not found in \(path), although a session opens it: no new vault was created",
      hint:
        "check that the file system of the home is mounted, or end the session with datavault lock "
        + "\(id)")
  }
}
