/// What to do with a database and the vault that may belong to it: facts in, action out.
///
/// The table of `docs/explanation/vaulted-database.md`, "Opening", as code. Nothing here touches a
/// disk, so every row of the table is a test.
enum OpeningDecision: Equatable, Sendable {
  /// Build a new database under this vault.
  case create
  /// Go on building the database that a crash interrupted.
  case resumeCreation([UInt8])
  /// The database was renamed into place before a crash: say that it is bound, then open it.
  case finishCreation
  /// Open it; the keys decide which one fits.
  case open
  /// Leave everything as it is.
  case refuse(VaultedDatabaseError.Code)

  /// What an unlocked vault says of its database.
  enum Binding: Equatable, Sendable {
    case none
    case creating([UInt8])
    case bound([UInt8])
  }

  /// What lies at the database's path.
  enum Database: Equatable, Sendable {
    case absent
    /// Only a write-ahead log or a journal is there: its database is gone.
    case orphanedLog
    case sealed(fileID: [UInt8])
    /// The first 16 bytes are not those of the vault's database, and its pages are.
    case damagedHeader
    case plain
    case newerVersion
    /// A file that no database of ours begins with, an empty one included.
    case unrecognized
  }

  init(binding: Binding, database: Database) {
    self =
      switch (binding, database) {
      case (.bound, .damagedHeader): .refuse(.damaged)
      case (_, .damagedHeader): .refuse(.databaseMismatch)
      case (_, .plain): .refuse(.plainDatabase)
      case (_, .newerVersion): .refuse(.newerVersion)

      case (.none, .absent): .create
      case (.none, .sealed), (.none, .orphanedLog): .refuse(.databaseMismatch)
      case (.none, .unrecognized): .refuse(.databaseMismatch)

      case (.creating(let id), .absent): .resumeCreation(id)
      case (.creating(let id), .sealed(let fileID)) where id == fileID: .finishCreation
      case (.creating, _): .refuse(.databaseMismatch)

      case (.bound, .absent), (.bound, .orphanedLog): .refuse(.databaseMissing)
      case (.bound(let id), .sealed(let fileID)) where id == fileID: .open
      case (.bound, .sealed): .refuse(.databaseMismatch)
      case (.bound, .unrecognized): .refuse(.damaged)
      }
  }
}
