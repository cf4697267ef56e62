internal import ArgumentParser
package import DataVault
internal import VaultCrypto

/// The options that name the current password and salt.
package struct PasswordOptions: ParsableArguments {
  @Option(help: .passwordFile, completion: .file()) var passwordFile: String?
  @Option(name: .customLong("password-fd"), help: .passwordDescriptor) var passwordDescriptor:
    Int32?
  @Option(help: .credential) var credential: String?
  @Option(help: .passwordCommand) var passwordCommand: String?
  @Option(help: .saltFile, completion: .file()) var saltFile: String?
  @Option(name: .customLong("salt-fd"), help: .saltDescriptor) var saltDescriptor: Int32?
  @Flag(name: .customLong("salt-prompt"), help: .saltPrompt) var asksForSalt = false

  /// Creates the options without values, for the parser.
  package init() {}

  /// Whether an option names a source.
  ///
  /// The command then uses that source and no other.
  package var areGiven: Bool {
    hasPassword || saltFile != nil || saltDescriptor != nil || asksForSalt
  }

  /// Whether an option names the source of the password; otherwise the user types it.
  var hasPassword: Bool {
    passwordFile != nil || passwordDescriptor != nil || credential != nil || passwordCommand != nil
  }

  /// The files and descriptors that are given.
  package var sources: [SecretSource] {
    SecretSource.given(files: [passwordFile, saltFile], [passwordDescriptor, saltDescriptor])
  }

  /// Refuses two sources of a secret, and one stream for two.
  package func validate() throws {
    let given = [passwordFile, passwordDescriptor.map(String.init), credential, passwordCommand]
    guard given.count(where: { $0 != nil }) <= 1 else {
      throw ValidationError(
        "give only one of --password-file, --password-fd, --credential and --password-command")
    }
    guard [saltFile != nil, saltDescriptor != nil, asksForSalt].count(where: { $0 }) <= 1 else {
      throw ValidationError("give only one of --salt-file, --salt-fd and --salt-prompt")
    }
    try SecretRules.check(sources)
  }

  /// Reads the password from the named source, otherwise from the terminal.
  package func read(for id: VaultID) throws -> Credentials {
    let password = try passwordSource(for: id).read()
    return Credentials(password: password, salt: try saltSource(for: id)?.read())
  }

  private func passwordSource(for id: VaultID) -> SecretInput {
    if let passwordFile { return .file(passwordFile) }
    if let passwordDescriptor { return .descriptor(passwordDescriptor) }
    if let credential { return .source(.credential(credential)) }
    if let passwordCommand { return .source(.command(["/bin/sh", "-c", passwordCommand])) }
    return .terminal(
      SecretInput.Question(
        what: "password", vault: id,
        hint: "give --password-file FILE, --password-fd N or --credential NAME"))
  }

  private func saltSource(for id: VaultID) -> SecretInput? {
    if let saltFile { return .file(saltFile) }
    if let saltDescriptor { return .descriptor(saltDescriptor) }
    guard asksForSalt else { return nil }
    return .terminal(
      SecretInput.Question(
        what: "salt", vault: id, hint: "give --salt-file FILE or --salt-fd N"))
  }
}

extension ArgumentHelp {
  static let passwordFile = ArgumentHelp(
    "Read the password from a file. A final newline is ignored.", valueName: "file")
  static let passwordDescriptor = ArgumentHelp(
    "Read the password from a file descriptor.", valueName: "n")
  static let credential = ArgumentHelp(
    "Read the password from a systemd credential in $CREDENTIALS_DIRECTORY.", valueName: "name")
  static let passwordCommand = ArgumentHelp(
    "Read the password from the output of a command, which a shell runs: 'pass show vault'.",
    valueName: "command")
  static let saltFile = ArgumentHelp(
    "Read the salt from a file. Needed if the vault has one.", valueName: "file")
  static let saltDescriptor = ArgumentHelp("Read the salt from a file descriptor.", valueName: "n")
  static let saltPrompt: ArgumentHelp = "Ask for the salt at the terminal, without echo."
}
