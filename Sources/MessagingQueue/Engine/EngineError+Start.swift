internal import DataVault
internal import FileLayer
internal import SystemPackage
internal import VaultedDatabase

extension EngineError {
  /// What a refusal of ``StartDecision`` says.
  init(refusing code: Code, _ home: DataVaultHome) {
    switch code {
    case .keyMissing:
      self.init(
        code, "there are messages in \(home.path), but no vault that has their key",
        hint: "restore vaults/messaging.vault from a backup")
    case .vaultMissing:
      self.init(
        code, "the messaging vault is not in \(home.path), and none was made in its place",
        hint:
          "check that this is the right home and that its file system is mounted; in a new home "
          + "run datavault lock \(VaultID.messaging) and datavault secure first")
    case .notSecured:
      self.init(
        code,
        "the messaging vault in \(home.path) opens with the publicly known password, and a secured one "
          + "is required", hint: "run datavault secure")
    default:
      self.init(
        code, "the messaging vault in \(home.path) is locked",
        hint: "run datavault unlock \(VaultID.messaging) as this user, or give its password")
    }
  }

  /// Says what an error of the vault or of opening the database means to whoever starts an engine.
  init(starting error: any Error) {
    switch error {
    case let error as EngineError:
      self = error
    case let error as VaultedDatabaseError:
      self.init(error)
    case let error as VaultError:
      self.init(Self.code(of: error), error.message, hint: error.hint, underlying: error)
    default:
      self.init(translating: error, during: "starting the engine")
    }
  }

  private init(_ error: VaultedDatabaseError) {
    if let code = Self.startCodes[error.code] {
      let hint = code == .damaged ? Self.damageHint : nil
      self.init(code, error.message, hint: error.hint ?? hint, underlying: error)
    } else if let cause = error.underlying, cause is VaultError || cause is EngineError {
      self.init(starting: cause)
    } else {
      self.init(.inputOutput, error.message, hint: error.hint, underlying: error)
    }
  }

  private static let startCodes: [VaultedDatabaseError.Code: Code] = [
    .vaultLocked: .vaultLocked, .keyMissing: .keyMissing, .databaseMissing: .databaseMissing,
    .foreignDatabase: .foreignDatabase, .plainDatabase: .plainDatabase,
    .newerVersion: .newerVersion, .damaged: .damaged, .busy: .busy, .diskFull: .diskFull,
    .readOnly: .readOnly, .rolledBack: .rolledBack, .foreignFile: .foreignFile,
  ]

  private static func code(of error: VaultError) -> Code {
    switch error.code {
    case .wrongPassword: .wrongPassword
    case .locked, .sessionStale: .vaultLocked
    case .doesNotExist: .vaultMissing
    case .damaged: .damaged
    case .newerVersion: .newerVersion
    default: .vault
    }
  }
}
