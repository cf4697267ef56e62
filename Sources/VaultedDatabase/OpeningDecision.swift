internal import DataVault

/// Decides how to open a database and the vault that possibly belongs to it: facts in, action out.
///
/// It is the table of `docs/explanation/vaulted-database.md`, "Opening", as code. It does no I/O, so every row
/// of the table is a test.
enum OpeningDecision: Equatable, Sendable {
  /// Make a new database under this vault.
  case create
  /// Continue making the database whose creation a crash interrupted.
  case resumeCreation([UInt8])
  /// Mark the database as bound, then open it: a crash came after the rename.
  case finishCreation
  /// Open it; the keys show which one fits.
  case open
  /// Change nothing.
  case refuse(VaultedDatabaseError.Code)

  /// The database that an unlocked vault names.
  enum Binding: Equatable, Sendable {
    case none
    case creating([UInt8])
    case bound([UInt8])

    init(_ binding: DatabaseBinding?) {
      guard let binding else {
        self = .none
        return
      }
      self =
        switch binding.state {
        case .creating: .creating(binding.databaseID)
        case .bound: .bound(binding.databaseID)
        }
    }
  }

  /// The file at the database's path.
  enum Database: Equatable, Sendable {
    case absent
    /// Only a write-ahead log, a journal or a link that leads nowhere exists: the database is gone.
    case orphanedLog
    case sealed(fileID: [UInt8])
    /// The first 16 bytes differ from the vault's database, but its pages open.
    case damagedHeader
    case plain
    case newerVersion
    /// A file that does not begin like one of our databases, or an empty file.
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
