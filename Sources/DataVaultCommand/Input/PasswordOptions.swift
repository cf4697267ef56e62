internal import ArgumentParser
internal import DataVault
internal import VaultCrypto

/// Where the current password and salt come from.
struct PasswordOptions: ParsableArguments {
  @Option(
    name: .customLong("password-file"),
    help: ArgumentHelp(
      "Read the password from a file; a final newline is not part of it.", valueName: "file"))
  var passwordFile: String?

  @Option(
    name: .customLong("password-fd"),
    help: ArgumentHelp("Read the password from an open file descriptor.", valueName: "n"))
  var passwordDescriptor: Int32?

  @Option(
    name: .customLong("credential"),
    help: ArgumentHelp(
      "Read the password from a systemd credential, in $CREDENTIALS_DIRECTORY.",
      valueName: "name"))
  var credential: String?

  @Option(
    name: .customLong("salt-file"),
    help: ArgumentHelp("Read the salt from a file; needed if one was given.", valueName: "file"))
  var saltFile: String?

  @Option(
    name: .customLong("salt-fd"),
    help: ArgumentHelp("Read the salt from an open file descriptor.", valueName: "n"))
  var saltDescriptor: Int32?

  /// Whether a source was named: it is used then, and nothing in its place.
  var areGiven: Bool {
    passwordFile != nil || passwordDescriptor != nil || credential != nil || saltFile != nil
      || saltDescriptor != nil
  }

  var descriptors: [Int32] { [passwordDescriptor, saltDescriptor].compactMap { $0 } }

  func validate() throws {
    let count = [passwordFile, passwordDescriptor.map(String.init), credential].count { $0 != nil }
    guard count <= 1 else {
      throw ValidationError("give one of --password-file, --password-fd and --credential")
    }
    guard saltFile == nil || saltDescriptor == nil else {
      throw ValidationError("give one of --salt-file and --salt-fd")
    }
    try DescriptorRules.check(descriptors)
  }

  /// The password from the source that was named, else from the terminal.
  func read(for id: VaultID) throws(CommandFailure) -> Credentials {
    let password =
      if let passwordSource { try passwordSource.read() } else { try Self.ask(for: id) }
    return Credentials(password: password, salt: try saltSource?.read())
  }

  private static func ask(for id: VaultID) throws(CommandFailure) -> SecretBytes {
    guard let terminal = Terminal() else {
      throw CommandFailure(
        .notPermitted, "vault \(id) needs a password, and there is no terminal to ask at",
        hint: "give --password-file FILE, --password-fd N or --credential NAME")
    }
    return try terminal.readSecret(prompt: "Password of vault \(id): ")
  }

  private var passwordSource: SecretSource? {
    if let passwordFile { return .file(passwordFile) }
    if let passwordDescriptor { return .descriptor(passwordDescriptor) }
    return credential.map(SecretSource.credential)
  }

  private var saltSource: SecretSource? {
    if let saltFile { return .file(saltFile) }
    return saltDescriptor.map(SecretSource.descriptor)
  }
}
