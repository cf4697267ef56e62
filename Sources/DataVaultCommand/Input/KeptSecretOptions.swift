internal import ArgumentParser
internal import DataVault
internal import SealedVFS
internal import SystemPackage

/// Where comes from what opens each slot that is kept, of any kind and number.
struct KeptSecretOptions: ParsableArguments {
  @OptionGroup var password: PasswordOptions

  @Option(
    name: .customLong("recovery-code-file"),
    help: ArgumentHelp(
      "Keep the slot of a recovery code, read from a file; may be repeated.", valueName: "file"))
  var recoveryCodeFiles: [String] = []

  @Option(
    name: .customLong("recovery-code-fd"),
    help: ArgumentHelp(
      "Keep the slot of a recovery code, read from an open file descriptor; may be repeated.",
      valueName: "n"))
  var recoveryCodeDescriptors: [Int32] = []

  @Flag(
    name: .customLong("recovery-code-prompt"),
    help:
      "Keep the slot of a recovery code, asked for at the terminal, which does not show it; may be repeated."
  )
  var recoveryCodePromptCount: Int

  @Option(
    name: .customLong("slot-key-file"),
    help: ArgumentHelp("Keep the slot of a key file; may be repeated.", valueName: "file"))
  var slotKeyFiles: [String] = []

  @Option(
    name: .customLong("slot-key-fd"),
    help: ArgumentHelp(
      "Keep the slot of a key file, read from an open file descriptor; may be repeated.",
      valueName: "n"))
  var slotKeyDescriptors: [Int32] = []

  func validate() throws {
    try DescriptorRules.check(
      password.descriptors + recoveryCodeDescriptors + slotKeyDescriptors)
  }

  /// All secrets, cheap ones first; the password from the terminal where it is needed and no source
  /// was named.
  func read(for id: VaultID, needsPassword: Bool) throws -> VaultSecrets {
    var secrets = VaultSecrets()
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
