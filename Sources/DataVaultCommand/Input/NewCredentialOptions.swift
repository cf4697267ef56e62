internal import ArgumentParser
internal import DataVault
internal import VaultCrypto

/// Where a new password and salt come from.
struct NewCredentialOptions: ParsableArguments {
  @Option(
    name: .customLong("new-password-file"),
    help: ArgumentHelp(
      "Read the new password from a file; a final newline is not part of it.", valueName: "file"))
  var passwordFile: String?

  @Option(
    name: .customLong("new-password-fd"),
    help: ArgumentHelp("Read the new password from an open file descriptor.", valueName: "n"))
  var passwordDescriptor: Int32?

  @Option(
    name: .customLong("new-salt-file"),
    help: ArgumentHelp(
      "Read a salt from a file, to be given at every unlock.", valueName: "file"))
  var saltFile: String?

  @Option(
    name: .customLong("new-salt-fd"),
    help: ArgumentHelp("Read a salt from an open file descriptor.", valueName: "n"))
  var saltDescriptor: Int32?

  var descriptors: [Int32] { [passwordDescriptor, saltDescriptor].compactMap { $0 } }

  func validate() throws {
    guard passwordFile == nil || passwordDescriptor == nil else {
      throw ValidationError("give one of --new-password-file and --new-password-fd")
    }
    guard saltFile == nil || saltDescriptor == nil else {
      throw ValidationError("give one of --new-salt-file and --new-salt-fd")
    }
    try DescriptorRules.check(descriptors)
  }

  /// The new password from the source that was named, else from the terminal, where it is asked for
  /// twice.
  func read(for id: VaultID) throws(CommandFailure) -> Credentials {
    let password =
      if let passwordSource { try passwordSource.read() } else { try Self.ask(for: id) }
    guard password.byteCount > 0 else {
      throw CommandFailure(.badData, "the new password of vault \(id) is empty")
    }
    return Credentials(password: password, salt: try saltSource?.read())
  }

  private static func ask(for id: VaultID) throws(CommandFailure) -> SecretBytes {
    guard let terminal = Terminal() else {
      throw CommandFailure(
        .notPermitted, "vault \(id) needs a new password, and there is no terminal to ask at",
        hint: "give --new-password-file FILE or --new-password-fd N")
    }
    let password = try terminal.readSecret(prompt: "New password of vault \(id): ")
    let again = try terminal.readSecret(prompt: "The same again: ")
    guard SecretBytes.isEqual(password, again) else {
      throw CommandFailure(.badData, "the two passwords differ; nothing was changed")
    }
    return password
  }

  private var passwordSource: SecretSource? {
    if let passwordFile { return .file(passwordFile) }
    return passwordDescriptor.map(SecretSource.descriptor)
  }

  private var saltSource: SecretSource? {
    if let saltFile { return .file(saltFile) }
    return saltDescriptor.map(SecretSource.descriptor)
  }
}
