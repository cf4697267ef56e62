internal import DataVault
internal import SystemPackage
internal import VaultCrypto

/// The source of a secret that a command needs: one that an option names, or the user.
enum SecretInput {
  case source(SecretSource)
  /// The user at the terminal.
  case terminal(Question)

  /// What the user is asked for.
  struct Question {
    /// The name of the secret, such as "recovery code".
    let what: String
    let vault: VaultID
    /// Whether the user must type it twice, as every new secret.
    var isRepeated = false
    /// The options that name the secret where there is no terminal.
    let hint: String
  }

  static func file(_ path: String) -> SecretInput { .source(.file(FilePath(path))) }
  static func descriptor(_ number: Int32) -> SecretInput { .source(.descriptor(number)) }

  /// Reads the secret into locked memory.
  ///
  /// - Parameter allowsEmpty: whether the caller refuses an empty secret itself. The terminal can always give one.
  func read(allowsEmpty: Bool = false) throws -> SecretBytes {
    switch self {
    case .source(let source): try source.readBlocking(allowsEmpty: allowsEmpty)
    case .terminal(let question): try Self.ask(question)
    }
  }

  private static func ask(_ question: Question) throws(CommandFailure) -> SecretBytes {
    guard let terminal = Terminal() else {
      throw CommandFailure(
        .notPermitted,
        "vault '\(question.vault)' needs a \(question.what), and there is no terminal to ask at",
        hint: question.hint)
    }
    let name = question.what.prefix(1).uppercased() + question.what.dropFirst()
    let secret = try terminal.readSecret(
      prompt: "\(name) of vault \(question.vault): ", hint: question.hint)
    guard question.isRepeated else { return secret }
    let again = try terminal.readSecret(prompt: "The same again: ", hint: question.hint)
    guard SecretBytes.isEqual(secret, again) else {
      throw CommandFailure(.badData, "the two entries differ: nothing was changed")
    }
    return secret
  }
}

extension SecretSource {
  /// The sources that options name, without those that are absent.
  static func given(files: [String?], _ descriptors: [Int32?]) -> [SecretSource] {
    files.compactMap { $0.map { .file(FilePath($0)) } }
      + descriptors.compactMap { $0.map(SecretSource.descriptor) }
  }
}
