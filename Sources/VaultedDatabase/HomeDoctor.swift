package import DataVault
internal import FileLayer
internal import Glibc
package import GRDB
internal import SealedVFS
internal import SystemPackage

/// Looks for problems with a home's files and with its messaging database.
///
/// It changes nothing and opens no vault. `VaultDoctor` finds problems of the vaults themselves.
public enum HomeDoctor {
  /// All findings: first the owners and modes of files, then whether the database belongs to its
  /// vault.
  ///
  /// Root checks a home for its owner, any other user for himself.
  public static func examine(_ home: DataVaultHome) async -> [HomeFinding] {
    await examineFiles(of: home) + examineBinding(of: home)
  }

  /// The owners and modes of files.
  package static func examineFiles(of home: DataVaultHome) -> [HomeFinding] {
    do throws(FileError) {
      return try fileFindings(home)
    } catch {
      return [HomeFinding(VaultedDatabaseError(any: error))]
    }
  }

  /// Whether the database belongs to its vault, by what the vault says while it is locked.
  package static func examineBinding(of home: DataVaultHome) async -> [HomeFinding] {
    await DatabaseCoordinator(home: home).bindingFindings()
  }

  /// Whether the database belongs to its vault, which must be unlocked, and has its last anchor.
  ///
  /// Damage of the header is told from another database here: its pages are opened.
  ///
  /// - Parameter examine: finds problems in what the database holds, once the other checks have found none.
  package static func examineDatabase(
    of home: DataVaultHome, vault: Vault, anchorStorage: any AnchorStorage,
    examine: @Sendable (Database) throws -> [HomeFinding] = { _ in [] }
  ) async -> [HomeFinding] {
    do throws(VaultedDatabaseError) {
      return try await DatabaseCoordinator(home: home).check(vault, anchorStorage, examine)
    } catch {
      // A start asks for the anchor too, and ends with the same error; another process goes away.
      guard error.code == .busy else { return [HomeFinding(error.namingSalvage)] }
      return [.rollbackNotChecked(error.message, fix: error.hint ?? "see the message")]
    }
  }

  private static func fileFindings(_ home: DataVaultHome) throws(FileError) -> [HomeFinding] {
    // The trailing dot resolves a home that is a symbolic link.
    guard let status = try home.fileSystem.status(of: home.path.appending(".")) else { return [] }
    let owner = geteuid() == 0 ? status.owner.userID : geteuid()
    var findings: [HomeFinding] = []
    if let finding = foreignOwner(home.path, status, owner) { findings.append(finding) }
    if !status.permissions.isDisjoint(with: [.groupWrite, .otherWrite]) {
      findings.append(
        HomeFinding(
          "permissionsTooOpen", "other users can make, rename and remove files in \(home.path)",
          fix: "chmod go-w \(home.path.shellWord)"))
    }
    let vaults = home.path.appending("vaults")
    let vaultNames = try home.fileSystem.entries(of: vaults) ?? []
    // The store checks their modes whenever it reads them.
    for path in [vaults] + vaultNames.filter({ $0.hasSuffix(".vault") }).map(vaults.appending) {
      if let status = try home.fileSystem.status(of: path) {
        if let finding = foreignOwner(path, status, owner) { findings.append(finding) }
      }
    }
    findings += try unusableFiles(home).map { HomeFinding($0) }
    findings += try leftovers(of: home)
    let suffixes = [
      "", "-wal", "-shm", "-journal", "-notify", "-maintenance", "-reserve", "-replica",
      "-replica-ready",
    ]
    for path in suffixes.map({ FilePath(home.databasePath.string + $0) }) + [home.lockPath] {
      guard let status = try home.fileSystem.status(of: path) else { continue }
      if let finding = foreignOwner(path, status, owner) { findings.append(finding) }
      // A symbolic link has no permissions of its own, and chmod would change its target's.
      if status.kind == .regular, status.isOpenToOthers {
        findings.append(
          HomeFinding(
            "permissionsTooOpen", "other users can read or write \(path)",
            fix: "chmod 600 \(path.shellWord)")
        )
      }
    }
    return findings
  }

  /// What keeps an engine from opening the database as this user: kinds, owners and modes of its files.
  ///
  /// No file of SQLite's is opened: closing it again would end the locks that this process holds on it.
  private static func unusableFiles(
    _ home: DataVaultHome
  ) throws(FileError) -> [VaultedDatabaseError] {
    var errors: [VaultedDatabaseError] = []
    do throws(FileError) {
      if try home.fileSystem.status(of: home.lockPath) != nil {
        try home.fileSystem.lock(home.lockPath, wait: false)?.release()
      }
    } catch {
      errors.append(VaultedDatabaseError(any: error))
    }
    for path in [home.creationPath, home.salvagePath, home.databasePath.temporarySibling] {
      guard let status = try home.fileSystem.status(of: path), status.kind != .regular else {
        continue
      }
      errors.append(
        VaultedDatabaseError(
          .inputOutput,
          "\(path) is not a regular file: an unfinished one of that name is removed first",
          hint: "find out who made it, and move it away"))
    }
    // A directory there is no database: that is found where the vault's binding is looked at.
    guard let database = try home.fileSystem.status(of: home.databasePath),
      database.kind != .directory
    else { return errors }
    for path in [home.path, home.databasePath] where !isWritable(path) {
      errors.append(
        VaultedDatabaseError(
          .readOnly, "this user cannot read and write \(path), so the messages cannot be used",
          hint: "look at owner, permissions and how it is mounted"))
    }
    for suffix in ["-wal", "-shm", "-journal"] {
      let path = FilePath(home.databasePath.string + suffix)
      guard let status = try home.fileSystem.status(of: path) else { continue }
      // An engine gives modes of its own files back, and never needs another user's empty journal.
      let isForeign = status.owner.userID != geteuid() && suffix != "-journal"
      guard status.kind != .regular || (isForeign && !isWritable(path)) else { continue }
      let reason =
        status.kind == .regular ? "this user cannot read and write it" : "it is not a regular file"
      errors.append(
        VaultedDatabaseError(
          .inputOutput, "\(path) keeps the messages from being used: \(reason)",
          hint: "find out who made it, and move it away"))
    }
    return errors
  }

  /// Whether the effective user can read and write a file; a missing file counts as yes.
  private static func isWritable(_ path: FilePath) -> Bool {
    unsafe faccessat(AT_FDCWD, path.string, R_OK | W_OK, AT_EACCESS) == 0 || errno == ENOENT
  }

  private static func foreignOwner(
    _ path: FilePath, _ status: FileStatus, _ owner: UInt32
  ) -> HomeFinding? {
    if status.owner.userID == owner { return nil }
    return HomeFinding(
      "foreignOwner", "\(path) belongs to user \(status.owner.userID), not to user \(owner)",
      fix: "find out which user made it; if it is yours, run chown \(owner) \(path.shellWord)")
  }
}

extension DatabaseCoordinator {
  /// Compares the vault's clear members with the database's header, without opening the vault.
  fileprivate func bindingFindings() async -> [HomeFinding] {
    do {
      try home.requireShortPath()
      let found = try inspectDatabase()
      let status: VaultStatus
      do throws(VaultError) {
        status = try await Vault.get(.messaging, in: home.store).status()
      } catch {
        // Any error but its absence is a finding of the vault's own doctor.
        guard error.code == .doesNotExist, found != .absent else { return [] }
        return [HomeFinding(.refusal(.keyMissing, home.databasePath))]
      }
      let binding = OpeningDecision.Binding(status.binding)
      if try isSalvageUnfinished(binding) { return [.salvageInterrupted(home)] }
      if case .refuse(let code) = OpeningDecision(binding: binding, database: found) {
        return [HomeFinding(.lockedRefusal(code, binding, found, home.databasePath))]
      }
      let isUnused = HomeDoctor.isUnused(home.lockPath, home)
      return try partialPageFindings() + journalFindings()
        + (isUnused ? HomeDoctor.unfinished(home.salvagePath, home) : [])
    } catch {
      return [HomeFinding(VaultedDatabaseError(any: error))]
    }
  }

  /// A file that is cut off within a page; without the key, only this shows that pages are missing.
  private func partialPageFindings() throws -> [HomeFinding] {
    guard let status = try home.fileSystem.status(of: home.databasePath),
      status.kind == .regular, status.byteCount % 4096 != 0, try !hasLogOrJournal()
    else { return [] }
    return [
      HomeFinding(
        "partialPage", "\(home.databasePath) ends within a page: it was possibly cut off",
        fix: "run datavault queue verify")
    ]
  }

  /// Whether a journal is hot is known only with the key.
  private func journalFindings() throws -> [HomeFinding] {
    let path = FilePath("\(home.databasePath)-journal")
    guard let status = try home.fileSystem.status(of: path), status.kind == .regular,
      status.byteCount > 0
    else { return [] }
    let error = VaultedDatabaseError.hotJournal(beside: home)
    return [HomeFinding("leftoverJournal", error.message, fix: error.hint ?? "see the message")]
  }

  /// Like an opening, but without finishing interrupted protocols.
  fileprivate func check(
    _ vault: Vault, _ anchorStorage: any AnchorStorage,
    _ examine: @Sendable (Database) throws -> [HomeFinding]
  ) async throws(VaultedDatabaseError) -> [HomeFinding] {
    try await locked {
      if try await isSalvageUnfinished(of: vault) { return [.salvageInterrupted(home)] }
      if case .refuse(let code) = try await decide(vault) {
        throw try await refusal(code, of: vault)
      }
      try await requireAnchor(
        of: vault, in: anchorStorage, busyMode: Self.connectionBusyMode)
      guard try home.fileSystem.status(of: home.databasePath) != nil else { return [] }
      let keys = try await vault.databaseKeys()
      let fileID = try await vault.binding()?.databaseID ?? []
      return try keys.withFitting(home, fileID: fileID) { key in
        try look(key: key, busyMode: Self.connectionBusyMode, examine)
      } + journalFindings() + HomeDoctor.unfinished(home.salvagePath, home)
    }
  }
}

extension HomeFinding {
  fileprivate static func salvageInterrupted(_ home: DataVaultHome) -> HomeFinding {
    HomeFinding(
      "salvageInterrupted",
      "the salvage of \(home.databasePath) was interrupted; the next command that opens the queue completes it",
      fix: "run datavault queue salvage")
  }
}

extension VaultedDatabaseError {
  /// The error with the command that saves intact rows, where a lower layer names none.
  fileprivate var namingSalvage: VaultedDatabaseError {
    guard code == .damaged, underlying is SealedDatabaseError else { return self }
    return VaultedDatabaseError(
      code, message,
      hint:
        "keep the files unchanged, or copy them; restore a backup, or run datavault queue salvage to rescue "
        + "intact rows", underlying: underlying)
  }

  /// The error for a refusal while the vault is locked: damage of the first 16 bytes can look like another database, or
  /// like one of a newer version.
  fileprivate static func lockedRefusal(
    _ code: Code, _ binding: OpeningDecision.Binding, _ found: OpeningDecision.Database,
    _ path: FilePath
  ) -> VaultedDatabaseError {
    guard case .bound = binding else { return .refusal(code, path) }
    switch found {
    case .sealed:
      return VaultedDatabaseError(
        code, "the database \(path) does not belong to this vault, or its first bytes are damaged",
        hint: "to learn which, open the vault: datavault doctor --password-file FILE")
    case .newerVersion:
      return VaultedDatabaseError(
        code,
        "\(path) was written by a newer version of this software, or its first bytes are damaged",
        hint: "to learn which, open the vault: datavault doctor --password-file FILE")
    default: return .refusal(code, path)
    }
  }
}
