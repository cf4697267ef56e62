internal import DataVault
internal import FileLayer
internal import GRDB
internal import SealedSQLite
internal import SealedVFS
internal import VaultCrypto

extension DatabaseKeeper {
  /// Verifies the home's database with its vault's key and asks it for the vault's anchor; where it is clean,
  /// `examine` looks at its rows.
  func verify<Finding>(
    of vault: Vault, ledger: any AnchorLedger, checksContents: Bool,
    progress: (PageProgress) -> Void, _ examine: (Database) throws -> Finding
  ) async throws(VaultedDatabaseError) -> VerifiedDatabase<Finding> {
    do {
      let lock = try takeLock()
      defer { lock.release() }
      try await finishSalvage(of: vault)
      let fileID = try await requireOwnDatabase(of: vault)
      let keys = try await vault.databaseKeys()
      let (pages, rows): (Verification, Finding?) = try keys.withFitting(home, fileID: fileID) {
        key in
        let pages = try SealedVFS.verify(
          home.databasePath, key: key, fileID: fileID, over: home.baseVFS,
          checksContents: checksContents,
          progress: progress)
        guard pages.isClean else { return (pages, nil) }
        return (pages, try look(key: key, busyMode: .immediateError, examine))
      }
      let anchor: AnchorState
      do {
        anchor = try await anchorState(of: vault, in: ledger)
      } catch {
        anchor = .unreadable(error)
      }
      return VerifiedDatabase(pages: pages, anchor: anchor, rows: rows)
    } catch {
      throw VaultedDatabaseError(any: error)
    }
  }

  /// Refuses what is not there and what is somebody else's.
  ///
  /// - Returns: the file id that the vault's database has, whatever its header states.
  func requireOwnDatabase(of vault: Vault) async throws -> [UInt8] {
    let binding = try await vault.binding()
    switch try await decide(vault) {
    case .open, .refuse(.damaged): break
    case .finishCreation:
      try home.fileSystem.synchronizeDirectory(home.path)
      try await vault.completeBinding()
    case .create, .resumeCreation: throw VaultedDatabaseError.refusal(.databaseMissing, of: home)
    case .refuse(let code): throw VaultedDatabaseError.refusal(code, of: home)
    }
    return binding?.databaseID ?? []
  }
}
