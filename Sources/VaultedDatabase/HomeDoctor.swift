package import DataVault
internal import FileLayer
internal import Glibc
internal import GRDB
internal import SystemPackage

/// Looks for what is not as it should be with a home's files and with its messaging database.
///
/// It changes nothing and opens no vault. What is wrong with the vaults themselves `VaultDoctor` says.
public enum HomeDoctor {
  /// Everything that is found: first the owners and modes of files, then whether the database is the one of
  /// its vault.
  ///
  /// Root looks at a home for its owner; everybody else for themselves.
  public static func examine(_ home: DataVaultHome) async -> [HomeFinding] {
    var findings: [HomeFinding] = []
    do throws(FileError) {
      findings += try fileFindings(home)
    } catch {
      findings.append(HomeFinding(VaultedDatabaseError(error)))
    }
    findings += await DatabaseCoordinator(home: home).bindingFindings()
    return findings
  }

  /// Whether the database knows the last anchor of its vault, which is unlocked.
  package static func examineAge(
    of home: DataVaultHome, vault: Vault, ledger: any AnchorStorage
  ) async -> [HomeFinding] {
    do throws(VaultedDatabaseError) {
      try await DatabaseCoordinator(home: home).checkAnchor(of: vault, in: ledger)
      return []
    } catch {
      if [.rolledBack, .damaged, .databaseMismatch].contains(error.code) {
        return [HomeFinding(error)]
      }
      return [.rollbackNotChecked(error.message, fix: error.hint ?? "see the message")]
    }
  }

  private static func fileFindings(_ home: DataVaultHome) throws(FileError) -> [HomeFinding] {
    // A home that is reached through a symbolic link counts as what it leads to.
    guard let status = try home.fileSystem.status(of: home.path.appending(".")) else { return [] }
    let owner = geteuid() == 0 ? status.owner.userID : geteuid()
    var findings: [HomeFinding] = []
    if let finding = foreignOwner(home.path, status, owner) { findings.append(finding) }
    if !status.permissions.isDisjoint(with: [.groupWrite, .otherWrite]) {
      findings.append(
        HomeFinding(
          "permissionsTooOpen", "other users may make, rename and remove files in \(home.path)",
          fix: "chmod go-w \(home.path)"))
    }
    let vaults = home.path.appending("vaults")
    let vaultNames = try home.fileSystem.entries(of: vaults) ?? []
    // What their modes are the store looks at whenever it reads them.
    for path in [vaults] + vaultNames.filter({ $0.hasSuffix(".vault") }).map(vaults.appending) {
      if let status = try home.fileSystem.status(of: path) {
        if let finding = foreignOwner(path, status, owner) { findings.append(finding) }
      }
    }
    let suffixes = ["", "-wal", "-shm", "-journal", "-notify", "-maintenance"]
    for path in suffixes.map({ FilePath(home.databasePath.string + $0) }) + [home.lockPath] {
      guard let status = try home.fileSystem.status(of: path) else { continue }
      if let finding = foreignOwner(path, status, owner) { findings.append(finding) }
      if status.isOpenToOthers {
        findings.append(
          HomeFinding(
            "permissionsTooOpen", "other users can read or write \(path)", fix: "chmod 600 \(path)")
        )
      }
    }
    return findings
  }

  private static func foreignOwner(
    _ path: FilePath, _ status: FileStatus, _ owner: UInt32
  ) -> HomeFinding? {
    if status.owner.userID == owner { return nil }
    return HomeFinding(
      "foreignOwner", "\(path) belongs to user \(status.owner.userID), not to user \(owner)",
      fix: "find out who made it; if it is yours: chown \(owner) \(path)")
  }
}

extension DatabaseCoordinator {
  /// What the vault shows of its database without being opened, held against the database's header.
  fileprivate func bindingFindings() async -> [HomeFinding] {
    do {
      let found = try lookAtDatabase()
      let status: VaultStatus
      do throws(VaultError) {
        status = try await Vault.get(.messaging, in: home.store).status()
      } catch {
        // All else than its absence is the vault's own finding.
        guard error.code == .doesNotExist, found != .absent else { return [] }
        return [HomeFinding(.refusal(.keyMissing, of: home))]
      }
      guard
        case .refuse(let code) = OpeningDecision(
          binding: OpeningDecision.Binding(status.binding), database: found)
      else { return [] }
      return [HomeFinding(.refusal(code, of: home))]
    } catch {
      return [HomeFinding(VaultedDatabaseError(any: error))]
    }
  }

  /// As an opening does, but without finishing what was interrupted.
  fileprivate func checkAnchor(
    of vault: Vault, in ledger: any AnchorStorage
  ) async throws(VaultedDatabaseError) {
    let lock = try takeLock()
    defer { lock.release() }
    do {
      try await requireAnchor(
        of: vault, in: ledger, busyMode: .timeout(ProtocolLock.connectionPatience / .seconds(1)))
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }
}

/// Something about a home's files, or its database, that is not as it should be, with its fix.
public struct HomeFinding: Sendable {
  /// The kind's name, stable for programs: `permissionsTooOpen`, `foreignOwner`, `rollbackNotChecked`, or the
  /// name of the error's code.
  public let kind: String

  /// The error that an engine's start would end with; nil when it would start.
  public let error: VaultedDatabaseError?

  /// What was found, for people.
  public let message: String

  /// What to do about it.
  public let fix: String

  init(_ kind: String, _ message: String, fix: String) {
    self.kind = kind
    error = nil
    self.message = message
    self.fix = fix
  }

  init(_ error: VaultedDatabaseError) {
    kind = error.code.name
    self.error = error
    message = error.message
    fix = error.hint ?? "see the message"
  }

  /// That nobody has looked whether the database is an older copy.
  ///
  /// - Parameter reason: why not.
  public static func rollbackNotChecked(_ reason: String, fix: String) -> HomeFinding {
    HomeFinding(
      "rollbackNotChecked", "whether the database was rolled back cannot be told: \(reason)",
      fix: fix)
  }
}
