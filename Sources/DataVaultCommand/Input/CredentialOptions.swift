internal import ArgumentParser
internal import DataVault
internal import SealedVFS
internal import SystemPackage

/// Where comes from what opens a vault: a password, a recovery code or a key file.
struct CredentialOptions: ParsableArguments {
  @OptionGroup var password: PasswordOptions

  @Option(
    name: .customLong("recovery-code-file"),
    help: ArgumentHelp("Open by a recovery code, read from a file.", valueName: "file"))
  var recoveryCodeFile: String?

  @Option(
    name: .customLong("recovery-code-fd"),
    help: ArgumentHelp(
      "Open by a recovery code, read from an open file descriptor.", valueName: "n"))
  var recoveryCodeDescriptor: Int32?

  @Option(
    name: .customLong("slot-key-file"),
    help: ArgumentHelp(
      "Open by a key file: 32 bytes that only their owner may read.", valueName: "file"))
  var slotKeyFile: String?

  @Option(
    name: .customLong("slot-key-fd"),
    help: ArgumentHelp(
      "Open by a key file, read from an open file descriptor.", valueName: "n"))
  var slotKeyDescriptor: Int32?

  /// Whether a source was named: it is used then, and nothing in its place.
  var areGiven: Bool { password.areGiven || otherSource != nil }

  var descriptors: [Int32] {
    password.descriptors
      + [recoveryCodeDescriptor, slotKeyDescriptor].compactMap { $0 }
  }

  func validate() throws {
    let others = [
      recoveryCodeFile, recoveryCodeDescriptor.map(String.init), slotKeyFile,
      slotKeyDescriptor.map(String.init),
    ].count { $0 != nil }
    guard others <= 1, others == 0 || !password.areGiven else {
      throw ValidationError("give one of a password, a recovery code and a key file")
    }
    try DescriptorRules.check(descriptors)
  }

  /// The secret from the source that was named, else a password from the terminal.
  func read(for id: VaultID) throws -> VaultSecret {
    if let otherSource { return try otherSource.read() }
    return .password(try password.read(for: id))
  }

  private var otherSource: SlotSecretSource? {
    if let recoveryCodeFile { return .recoveryCode(.file(recoveryCodeFile)) }
    if let recoveryCodeDescriptor { return .recoveryCode(.descriptor(recoveryCodeDescriptor)) }
    if let slotKeyFile { return .keyFile(.file(FilePath(slotKeyFile))) }
    return slotKeyDescriptor.map { .keyFile(.descriptor($0)) }
  }
}
