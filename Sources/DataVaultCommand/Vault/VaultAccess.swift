internal import DataVault
internal import FileLayer
internal import VaultedDatabase

/// Opens vaults for commands, by one rule: a source that was named is used and nothing in its
/// place; without one, a secured vault opens through its session or asks at the terminal, and only
/// one that is not secured opens with the publicly known credentials, unless a secured one is required.
struct VaultAccess {
  let home: DataVaultHome
  let credentials: CredentialOptions
  /// Whether `datavault unlock` may stand in for the password.
  var usesSession = true

  /// The vault, unlocked.
  ///
  /// - Parameter toChangePassword: takes a password also that the policy no longer allows.
  func open(_ id: VaultID, toChangePassword: Bool = false) async throws -> Vault {
    // Before work that may last: a queue that is followed.
    defer { MemoryWarning.giveOnce() }
    let vault = try await Vault.get(id, in: home.store)
    if try credentials.requiresSecuredVault(), try await !vault.status().isSecured {
      throw CommandFailure(
        .policy,
        "vault \(id) opens with the publicly known password, and a secured one is required",
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
          .notPermitted, "vault \(id) has neither a password nor a recovery code to ask for",
          hint: "give --slot-key-file FILE or --slot-key-fd N")
      }
      try await unlock(with: credentials.read(for: id))
      return vault
    }
    try await unlock(with: .password(.standard))
    StandardError.warn(
      "vault \(id) is not secured: it opens with the publicly known password; \(id.securingHint)")
    return vault
  }
}

extension DataVaultHome {
  /// Whether there is a file where the messages belong.
  func hasDatabase() throws -> Bool {
    try fileSystem.status(of: databasePath) != nil
  }

  /// The live session of a vault; where the kernel refuses sessions, there is none.
  func liveSession(of id: VaultID) async throws -> VaultSession? {
    do throws(VaultError) {
      return try await VaultSession.find(id, in: store)
    } catch {
      guard error.code == .sessionsUnavailable else { throw error }
      return nil
    }
  }

  /// For who would make a vault: one that a session names was there.
  func requireNoSession(of id: VaultID) async throws {
    guard try await liveSession(of: id) != nil else { return }
    throw CommandFailure(
      .absent,
      "a session opens vault \(id) of \(path), which is not there: none was made in its place",
      hint:
        "check that the file system of the home is mounted, or end the session with datavault lock "
        + "\(id)")
  }
}
