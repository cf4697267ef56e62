internal import DataVault
internal import SealedVFS

/// Where a recovery code or a slot's key comes from.
enum SlotSecretSource {
  case recoveryCode(SecretSource)
  /// 32 bytes, none of them dropped; a file has to be its owner's alone.
  case keyFile(KeySource)

  /// The person at the terminal, who types a recovery code.
  static func recoveryCodePrompt(for id: VaultID) -> SlotSecretSource {
    .recoveryCode(
      .terminal(
        SecretSource.Question(
          what: "recovery code", vault: id,
          hint: "give --recovery-code-file FILE or --recovery-code-fd N")))
  }

  func read() throws -> VaultSecret {
    switch self {
    case .recoveryCode(let source): .recoveryCode(try RecoveryCode(parsing: source.read()))
    case .keyFile(let source): .keyFile(try source.read())
    }
  }
}
