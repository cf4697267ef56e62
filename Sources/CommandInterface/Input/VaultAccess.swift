package import ArgumentParser
package import DataVault
internal import DesktopKeyring
internal import FileLayer
internal import SystemPackage
package import VaultedDatabase

/// What opens a vault or the queue: its options are those of a command.
///
/// They are no group of their own: in a debug build, each level of groups makes parsing four times slower.
package protocol VaultAccess: ParsableArguments {
  var homeOptions: HomeOptions { get }
  var credentials: CredentialOptions { get }
}

extension VaultAccess {
  /// As ``HomeOptions/home()``.
  package func home() throws(CommandFailure) -> DataVaultHome { try homeOptions.home() }

  /// As ``CredentialOptions/open(_:in:toChangePassword:usesSession:)``.
  package func open(
    _ id: VaultID, toChangePassword: Bool = false, usesSession: Bool = true
  ) async throws -> Vault {
    try await credentials.open(
      id, in: home(), toChangePassword: toChangePassword, usesSession: usesSession)
  }
}

extension CredentialOptions {
  /// Opens and unlocks a vault of a home.
  ///
  /// If an option names a source, the vault opens with that source and no other. Without one, a
  /// secured vault opens through its session, otherwise the command asks at the terminal. A vault
  /// that is not secured opens with the publicly known credentials, unless a secured vault is
  /// required.
  ///
  /// - Parameters:
  ///   - toChangePassword: whether to accept a password that the policy no longer allows.
  ///   - usesSession: whether a session of `datavault unlock` can replace the password.
  package func open(
    _ id: VaultID, in home: DataVaultHome, toChangePassword: Bool = false, usesSession: Bool = true
  ) async throws -> Vault {
    // Warns before long work starts, such as following a queue.
    defer { MemoryWarning.giveOnce() }
    let vault = try await Vault.get(id, in: home.store)
    let status = try await vault.status()
    // A new password is what secures a vault.
    if !toChangePassword, !status.isSecured, try requiresSecuredVault() {
      throw CommandFailure(
        .policy,
        "vault '\(id)' opens with the publicly known password, and a secured vault is required",
        hint: id.securingHint)
    }
    func unlock(isAsked: Bool, _ secret: () async throws -> VaultSecret) async throws {
      try await Self.retrying(isAsked: isAsked) {
        let secret = try await secret()
        let start = ContinuousClock.now
        if toChangePassword {
          try await vault.unlockToChangePassword(with: secret)
        } else {
          try await vault.unlock(with: secret)
        }
        let slot = await vault.lastOpenedSlot ?? "password"
        Detail.say(
          "opened vault '\(id)' with slot '\(slot)' in \(PeopleText.seconds(since: start))")
      }
    }
    if areGiven {
      try await unlock(isAsked: isAsked) {
        // A key that does not open the vault is no attempt.
        usesKeyring
          ? try await vault.secret(in: home.keyring) : try await read(for: id, in: home)
      }
      return vault
    }
    if status.isSecured {
      if usesSession, try await vault.unlockWithSession() {
        Detail.say("opened vault '\(id)' with its session")
        return vault
      }
      let kinds = Set(status.slots.map(\.kind))
      guard kinds.contains(.password) || kinds.contains(.recoveryCode) else {
        throw CommandFailure(
          .notPermitted, "vault '\(id)' has neither a password nor a recovery code to ask for",
          hint: "give --unlock-key-file FILE, --unlock-key-fd N or --keyring")
      }
      try await unlock(isAsked: true) {
        kinds.contains(.password)
          ? try await read(for: id, in: home)
          : try SlotSecretSource.recoveryCodePrompt(for: id).read()
      }
      return vault
    }
    guard try await home.liveSession(of: id) == nil else {
      throw CommandFailure(
        .policy,
        "vault '\(id)' opens with the publicly known password, but a session names a secured one",
        hint: "restore the vault that was replaced, or end the session with datavault lock \(id)")
    }
    try await unlock(isAsked: false) { .password(.standard) }
    StandardError.warnOfNoSecurity(of: id)
    return vault
  }

  /// Repeats what a user has mistyped, at most twice; each wrong attempt counts.
  private static func retrying(
    isAsked: Bool, _ body: () async throws -> Void
  ) async throws {
    for _ in 0..<(isAsked ? 2 : 0) {
      do {
        return try await body()
      } catch let error as VaultError
        where [.wrongPassword, .recoveryCodeMistyped].contains(error.code)
      {
        StandardError.say("\(error.message); try again")
      }
    }
    try await body()
  }
}

extension DataVaultHome {
  /// Whether the queue's database exists.
  package func hasDatabase() throws -> Bool {
    // A log or a journal shows that there was a database.
    try ["", "-wal", "-journal"].contains {
      try fileSystem.status(of: FilePath(databasePath.string + $0)) != nil
    }
  }

  /// Throws if a session of the vault exists: the vault existed, and must not be created again.
  ///
  /// Called before a command creates a vault. The file system of the home might be unmounted.
  package func requireNoSession(of id: VaultID) async throws {
    guard try await liveSession(of: id) != nil else { return }
    throw CommandFailure(
      .notFound,
      "vault '\(id)' not found in \(path), although a session opens it: no new vault was created",
      hint:
        "check that the file system of the home is mounted, or end the session with datavault lock "
        + "\(id)")
  }
}
