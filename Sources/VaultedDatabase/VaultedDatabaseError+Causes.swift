internal import DataVault
internal import FileLayer
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage

/// Errors of the modules below, in this module's terms.
extension VaultedDatabaseError {
  init(_ error: VaultError) {
    let code: Code =
      switch error.code {
      case .locked: .vaultLocked
      case .alreadySecured: .alreadySecured
      case .databaseStillExists: .databaseStillExists
      case .foreignFile: .foreignFile
      default: .vault
      }
    self.init(code, error.message, hint: error.hint, underlying: error)
  }

  init(_ error: SealedDatabaseError) {
    let code: Code =
      switch error.code {
      case .plainDatabase: .plainDatabase
      case .newerVersion: .newerVersion
      case .damaged, .damagedPage, .damagedJournal, .truncated, .notSealed, .foreignSibling:
        .damaged
      case .busy: .busy
      case .readOnly: .readOnly
      case .foreignFile: .foreignFile
      case .diskFull: .diskFull
      case .sameKey: .sameKey
      default: .database
      }
    self.init(code, error.message, hint: error.hint, underlying: error)
  }

  /// Any error that a protocol meets.
  init(any error: any Error) {
    switch error {
    case let error as VaultedDatabaseError: self = error
    case let error as VaultError: self.init(error)
    case let error as SealedDatabaseError: self.init(error)
    case let error as SealedFileError: self.init(error)
    case let error as FileError: self.init(error)
    default: self.init(.database, "the database failed: \(error)", underlying: error)
    }
  }

  init(_ error: SealedFileError) {
    self.init(SealedDatabaseError(error))
  }

  init(_ error: FileError) {
    switch error.errno {
    case _ where error.refusal != nil:
      self.init(.foreignFile, error.description, hint: error.hint, underlying: error)
    case .noSpace, .diskQuotaExceeded:
      self.init(.diskFull, error.description, hint: "free some space", underlying: error)
    case .readOnlyFileSystem, .permissionDenied, .notPermitted:
      self.init(
        .readOnly, error.description, hint: "look at owner, permissions and how it is mounted",
        underlying: error)
    default: self.init(.inputOutput, error.description, underlying: error)
    }
  }

  /// The refusal that a row of the opening table names.
  static func refusal(_ code: Code, of home: DataVaultHome) -> VaultedDatabaseError {
    refusal(code, home.databasePath)
  }

  /// The same for a database that lies elsewhere.
  static func refusal(_ code: Code, _ path: FilePath) -> VaultedDatabaseError {
    switch code {
    case .keyMissing:
      VaultedDatabaseError(
        code, "the database \(path) is there, but no vault that could hold its key",
        hint: "bring back the vault file from a backup; without it nothing opens this database")
    case .databaseMissing:
      VaultedDatabaseError(
        code, "the vault belongs to a database that is not at \(path)",
        hint: "mount the volume or restore the database; if this is a first run after an earlier "
          + "installation, clean up with: datavault clean-up-first-run")
    case .foreignDatabase:
      VaultedDatabaseError(
        code, "the database \(path) does not belong to this vault",
        hint: "restore vault and database together, or move one of them away")
    case .plainDatabase:
      VaultedDatabaseError(
        code, "\(path) is a plain SQLite database, not a sealed one",
        hint: "move it away; nothing was written to it")
    case .newerVersion:
      VaultedDatabaseError(
        code, "\(path) was written by a newer version of this software",
        hint: "use that version; nothing was written to it")
    default:
      VaultedDatabaseError(
        code, "\(path) does not begin like the database that the vault belongs to",
        hint:
          "keep the files as they are, or copy them; datavault queue salvage rescues what is whole")
    }
  }
}
