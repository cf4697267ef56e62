internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import DesktopKeyring
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto
internal import VaultedDatabase

/// The options that name a new password and a new salt.
struct NewCredentialOptions: ParsableArguments {
  @Option(
    name: .customLong("new-password-file"),
    help: ArgumentHelp(
      "Read the new password from a file. A final newline is ignored.", valueName: "file"),
    completion: .file())
  var passwordFile: String?

  @Option(
    name: .customLong("new-password-fd"),
    help: ArgumentHelp("Read the new password from a file descriptor.", valueName: "n"))
  var passwordDescriptor: Int32?

  @Option(
    name: .customLong("new-salt-file"),
    help: ArgumentHelp(
      "Read a salt from a file. Every unlock will need it.", valueName: "file"),
    completion: .file())
  var saltFile: String?

  @Option(
    name: .customLong("new-salt-fd"),
    help: ArgumentHelp("Read a salt from a file descriptor.", valueName: "n"))
  var saltDescriptor: Int32?

  @Flag(
    name: .customLong("new-salt-prompt"),
    help: "Ask for a salt at the terminal, twice. Every unlock will need it.")
  var asksForSalt = false

  /// The files and descriptors that are given.
  var sources: [SecretSource] {
    SecretSource.given(files: [passwordFile, saltFile], [passwordDescriptor, saltDescriptor])
  }

  func validate() throws {
    guard passwordFile == nil || passwordDescriptor == nil else {
      throw ValidationError("give only one of --new-password-file and --new-password-fd")
    }
    guard [saltFile != nil, saltDescriptor != nil, asksForSalt].count(where: { $0 }) <= 1 else {
      throw ValidationError("give only one of --new-salt-file, --new-salt-fd and --new-salt-prompt")
    }
    try SecretRules.check(sources)
  }

  /// Reads the new password from the named source, otherwise from the terminal, which asks for it
  /// twice.
  func read(for id: VaultID) throws -> Credentials {
    let password = try passwordSource(for: id).read(allowsEmpty: true)
    guard password.byteCount > 0 else {
      throw CommandFailure(.badData, "the new password of vault '\(id)' is empty")
    }
    let salt = try saltSource(for: id)?.read(allowsEmpty: true) ?? SecretBytes(copying: [])
    guard salt.byteCount > 0 || saltSource(for: id) == nil else {
      throw CommandFailure(
        .badData, "the new salt of vault '\(id)' is empty",
        hint: "give no salt, or one with content")
    }
    let credentials = Credentials(password: password, salt: salt)
    guard !credentials.haveStandardPassword() else {
      throw CommandFailure(
        .policy, "the new password of vault '\(id)' is the publicly known one",
        hint: "choose another; nothing has changed")
    }
    return credentials
  }

  private func passwordSource(for id: VaultID) -> SecretInput {
    if let passwordFile { return .file(passwordFile) }
    if let passwordDescriptor { return .descriptor(passwordDescriptor) }
    return .terminal(
      SecretInput.Question(
        what: "new password", vault: id, isRepeated: true,
        hint: "give --new-password-file FILE or --new-password-fd N"))
  }

  private func saltSource(for id: VaultID) -> SecretInput? {
    if let saltFile { return .file(saltFile) }
    if let saltDescriptor { return .descriptor(saltDescriptor) }
    guard asksForSalt else { return nil }
    return .terminal(
      SecretInput.Question(
        what: "new salt", vault: id, isRepeated: true,
        hint: "give --new-salt-file FILE or --new-salt-fd N"))
  }
}

/// The options that name a secret for each slot that `rotate` keeps, of any kind and number.
struct KeptSecretOptions: ParsableArguments {
  @OptionGroup var password: PasswordOptions

  @Option(
    name: .customLong("recovery-code-file"),
    help: ArgumentHelp(
      "Keep the slot of a recovery code read from a file. Can be repeated.", valueName: "file"),
    completion: .file())
  var recoveryCodeFiles: [String] = []

  @Option(
    name: .customLong("recovery-code-fd"),
    help: ArgumentHelp(
      "Keep the slot of a recovery code read from a file descriptor. Can be repeated.",
      valueName: "n"))
  var recoveryCodeDescriptors: [Int32] = []

  @Flag(
    name: .customLong("recovery-code-prompt"),
    help:
      "Keep the slot of a recovery code typed at the terminal, without echo. Can be repeated."
  )
  var recoveryCodePromptCount: Int

  @Option(
    name: .customLong("unlock-key-file"),
    help: ArgumentHelp("Keep the slot of a key file. Can be repeated.", valueName: "file"),
    completion: .file())
  var slotKeyFiles: [String] = []

  @Option(
    name: .customLong("unlock-key-fd"),
    help: ArgumentHelp(
      "Keep the slot of a key file read from a file descriptor. Can be repeated.",
      valueName: "n"))
  var slotKeyDescriptors: [Int32] = []

  @Flag(
    name: .customLong("keyring"), help: "Keep the slot of the key in the desktop's keyring.")
  var keepsKeyring = false

  func validate() throws {
    try SecretRules.check(
      password.sources
        + SecretSource.given(
          files: recoveryCodeFiles + slotKeyFiles, recoveryCodeDescriptors + slotKeyDescriptors))
  }

  /// Reads all secrets, those that are cheap to check first.
  ///
  /// The password comes from the terminal where it is needed and no option names its source.
  func read(
    for vault: Vault, in home: DataVaultHome, needsPassword: Bool
  ) async throws -> VaultSecrets {
    let id = vault.id
    var secrets = VaultSecrets()
    if keepsKeyring { secrets.append(try await vault.secret(in: home.keyring)) }
    for source in sources(for: id) { secrets.append(try source.read()) }
    if password.areGiven || needsPassword {
      secrets.append(.password(try password.read(for: id)))
    }
    return secrets
  }

  private func sources(for id: VaultID) -> [SlotSecretSource] {
    var sources: [SlotSecretSource] = []
    sources += slotKeyFiles.map { .keyFile(.file(FilePath($0))) }
    sources += slotKeyDescriptors.map { .keyFile(.descriptor($0)) }
    sources += recoveryCodeFiles.map { .recoveryCode(.file($0)) }
    sources += recoveryCodeDescriptors.map { .recoveryCode(.descriptor($0)) }
    sources += (0..<recoveryCodePromptCount).map { _ in .recoveryCodePrompt(for: id) }
    return sources
  }
}
