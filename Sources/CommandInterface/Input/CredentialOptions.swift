internal import ArgumentParser
package import DataVault
internal import DesktopKeyring
package import SealedVFS
internal import SystemPackage
package import VaultedDatabase

/// The options that name what opens a vault: a password, a recovery code, a key file or the desktop's keyring.
///
/// Those of ``PasswordOptions`` are repeated here, because a group within a group makes parsing in a debug build four
/// times slower.
package struct CredentialOptions: ParsableArguments {
  @Option(help: .passwordFile, completion: .file()) var passwordFile: String?
  @Option(name: .customLong("password-fd"), help: .passwordDescriptor) var passwordDescriptor:
    Int32?
  @Option(help: .credential) var credential: String?
  @Option(help: .passwordCommand) var passwordCommand: String?
  @Option(help: .saltFile, completion: .file()) var saltFile: String?
  @Option(name: .customLong("salt-fd"), help: .saltDescriptor) var saltDescriptor: Int32?
  @Flag(name: .customLong("salt-prompt"), help: .saltPrompt) var asksForSalt = false

  @Option(
    help: ArgumentHelp("Open the vault with a recovery code read from a file.", valueName: "file"),
    completion: .file())
  var recoveryCodeFile: String?

  @Option(
    name: .customLong("recovery-code-fd"),
    help: ArgumentHelp(
      "Open the vault with a recovery code read from a file descriptor.", valueName: "n"))
  var recoveryCodeDescriptor: Int32?

  @Flag(
    name: .customLong("recovery-code-prompt"),
    help: "Open the vault with a recovery code typed at the terminal, without echo.")
  var asksForRecoveryCode = false

  @Option(
    name: .customLong("unlock-key-file"),
    help: ArgumentHelp(
      "Open the vault with a key file: 32 bytes, readable only by its owner.", valueName: "file"),
    completion: .file())
  var slotKeyFile: String?

  @Option(
    name: .customLong("unlock-key-fd"),
    help: ArgumentHelp(
      "Open the vault with a key file read from a file descriptor.", valueName: "n"))
  var slotKeyDescriptor: Int32?

  @Flag(
    name: .customLong("keyring"),
    help: "Open the vault with the key that 'unlock --remember' has put into the desktop's keyring."
  )
  var usesKeyring = false

  @Flag(
    name: .customLong("require-secured"),
    help: "Refuse to create, open or import a vault with the publicly known password.")
  var demandsSecured = false

  /// Creates the options without values, for the parser.
  package init() {}

  private var password: PasswordOptions {
    var options = PasswordOptions()
    options.passwordFile = passwordFile
    options.passwordDescriptor = passwordDescriptor
    options.credential = credential
    options.passwordCommand = passwordCommand
    options.saltFile = saltFile
    options.saltDescriptor = saltDescriptor
    options.asksForSalt = asksForSalt
    return options
  }

  /// Whether the command must refuse to create or open a vault under the publicly known password.
  package func requiresSecuredVault() throws(CommandFailure) -> Bool {
    let isRequired = try Environment.requiresSecuredVault()
    return demandsSecured || isRequired
  }

  /// Whether an option names a source.
  ///
  /// The command then uses that source and no other.
  package var areGiven: Bool { password.areGiven || otherCount > 0 }

  /// Whether the user types the secret at the terminal, and can type it again.
  ///
  /// A salt from a descriptor can be read only once.
  var isAsked: Bool {
    asksForRecoveryCode
      || otherCount == 0 && !password.hasPassword && password.saltDescriptor == nil
  }

  /// The files and descriptors that are given.
  package var sources: [SecretSource] {
    password.sources
      + SecretSource.given(
        files: [recoveryCodeFile, slotKeyFile], [recoveryCodeDescriptor, slotKeyDescriptor])
  }

  /// Refuses two sources of a secret, and one stream for two.
  package func validate() throws {
    try password.validate()
    guard otherCount <= 1, otherCount == 0 || !password.areGiven else {
      throw ValidationError(
        "give only one of a password, a recovery code, a key file and --keyring")
    }
    try SecretRules.check(sources)
  }

  /// Reads the secret from the named source, otherwise a password from the terminal.
  package func read(for id: VaultID, in home: DataVaultHome) async throws -> VaultSecret {
    if usesKeyring { return try await home.keyring.secret(of: id) }
    if let source = otherSource(for: id) { return try source.read() }
    return .password(try password.read(for: id))
  }

  private var otherCount: Int {
    [
      recoveryCodeFile != nil, recoveryCodeDescriptor != nil, asksForRecoveryCode,
      slotKeyFile != nil, slotKeyDescriptor != nil, usesKeyring,
    ].count { $0 }
  }

  private func otherSource(for id: VaultID) -> SlotSecretSource? {
    if let recoveryCodeFile { return .recoveryCode(.file(recoveryCodeFile)) }
    if let recoveryCodeDescriptor { return .recoveryCode(.descriptor(recoveryCodeDescriptor)) }
    if asksForRecoveryCode { return .recoveryCodePrompt(for: id) }
    if let slotKeyFile { return .keyFile(.file(FilePath(slotKeyFile))) }
    return slotKeyDescriptor.map { .keyFile(.descriptor($0)) }
  }
}

/// The source of a recovery code or of a slot's key.
package enum SlotSecretSource {
  case recoveryCode(SecretInput)
  /// 32 bytes, all of which count. Only its owner must be able to read or write the file.
  case keyFile(KeySource)

  /// A recovery code that the user types at the terminal.
  package static func recoveryCodePrompt(for id: VaultID) -> SlotSecretSource {
    .recoveryCode(
      .terminal(
        SecretInput.Question(
          what: "recovery code", vault: id,
          hint: "give --recovery-code-file FILE or --recovery-code-fd N")))
  }

  /// Reads the secret into locked memory.
  package func read() throws -> VaultSecret {
    switch self {
    case .recoveryCode(let source): .recoveryCode(try RecoveryCode(parsing: source.read()))
    case .keyFile(let source): .keyFile(try source.read())
    }
  }
}
