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

  @Flag(
    name: .customLong("recovery-code-prompt"),
    help: "Open by a recovery code, asked for at the terminal, which does not show it.")
  var asksForRecoveryCode = false

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

  @Flag(
    name: .customLong("require-secured"),
    help: "Neither make nor open a vault under the publicly known password.")
  var demandsSecured = false

  /// Whether a vault under the publicly known password must be neither made nor opened.
  func requiresSecuredVault() throws(CommandFailure) -> Bool {
    if demandsSecured { return true }
    let variable = "DATAVAULT_REQUIRE_SECURED"
    switch Environment[variable] {
    case nil, "0": return false
    case "1": return true
    default:
      throw CommandFailure(
        .usage, "the variable \(variable) is neither 0 nor 1", hint: "set it to 1")
    }
  }

  /// Whether a source was named: it is used then, and nothing in its place.
  var areGiven: Bool { password.areGiven || otherCount > 0 }

  var descriptors: [Int32] {
    password.descriptors
      + [recoveryCodeDescriptor, slotKeyDescriptor].compactMap { $0 }
  }

  func validate() throws {
    guard otherCount <= 1, otherCount == 0 || !password.areGiven else {
      throw ValidationError("give one of a password, a recovery code and a key file")
    }
    try DescriptorRules.check(descriptors)
  }

  /// The secret from the source that was named, else a password from the terminal.
  func read(for id: VaultID) throws -> VaultSecret {
    if let source = otherSource(for: id) { return try source.read() }
    return .password(try password.read(for: id))
  }

  private var otherCount: Int {
    [
      recoveryCodeFile != nil, recoveryCodeDescriptor != nil, asksForRecoveryCode,
      slotKeyFile != nil, slotKeyDescriptor != nil,
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
