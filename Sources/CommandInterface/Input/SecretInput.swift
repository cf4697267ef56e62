package import DataVault
internal import SystemPackage
package import VaultCrypto

/// The source of a secret that a command needs: one that an option names, or the user.
package enum SecretInput {
  case source(SecretSource)
  /// The user at the terminal.
  case terminal(Question)

  /// What the user is asked for.
  package struct Question {
    /// The name of the secret, such as "recovery code".
    let what: String
    /// What the secret belongs to, such as "vault" and its id.
    let owner: (kind: String, name: String)
    /// Whether the user must type it twice, as every new secret.
    let isRepeated: Bool
    /// The options that name the secret where there is no terminal.
    let hint: String

    /// A question for a secret of a vault.
    package init(what: String, vault: VaultID, isRepeated: Bool = false, hint: String) {
      self.init(what: what, owner: ("vault", "\(vault)"), isRepeated: isRepeated, hint: hint)
    }

    /// A question for a secret of something else.
    ///
    /// - Parameter owner: its kind and its name.
    package init(
      what: String, owner: (kind: String, name: String), isRepeated: Bool = false, hint: String
    ) {
      self.what = what
      self.owner = owner
      self.isRepeated = isRepeated
      self.hint = hint
    }
  }

  /// A file, as an option names it.
  package static func file(_ path: String) -> SecretInput { .source(.file(FilePath(path))) }
  /// A file descriptor, as an option names it.
  package static func descriptor(_ number: Int32) -> SecretInput { .source(.descriptor(number)) }

  /// Reads the secret into locked memory.
  ///
  /// - Parameter allowsEmpty: whether the caller refuses an empty secret itself. The terminal can always give one.
  package func read(allowsEmpty: Bool = false) throws -> SecretBytes {
    switch self {
    case .source(let source): try source.readBlocking(allowsEmpty: allowsEmpty)
    case .terminal(let question): try Self.ask(question)
    }
  }

  private static func ask(_ question: Question) throws(CommandFailure) -> SecretBytes {
    let (kind, owner) = question.owner
    guard let terminal = Terminal() else {
      let article = question.what.hasPrefix("a") ? "an" : "a"
      throw CommandFailure(
        .notPermitted,
        "\(kind) '\(owner)' needs \(article) \(question.what), and there is no terminal to ask at",
        hint: question.hint)
    }
    let name = question.what.prefix(1).uppercased() + question.what.dropFirst()
    let secret = try terminal.readSecret(
      prompt: "\(name) of \(kind) \(owner): ", hint: question.hint)
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
  package static func given(files: [String?], _ descriptors: [Int32?]) -> [SecretSource] {
    files.compactMap { $0.map { .file(FilePath($0)) } }
      + descriptors.compactMap { $0.map(SecretSource.descriptor) }
  }
}
