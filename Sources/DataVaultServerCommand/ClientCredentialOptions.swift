internal import AccessControl
internal import ApplicationStore
internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import VaultCrypto

/// The options that name an auth key; never the key itself, because other processes can read arguments.
struct AuthKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("auth-key-file"),
    help: ArgumentHelp(
      "Read a client's auth key from a file. A final newline is ignored.", valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong("auth-key-fd"),
    help: ArgumentHelp("Read a client's auth key from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Flag(
    name: .customLong("auth-key-prompt"),
    help: "Ask for a client's auth key at the terminal, without echo.")
  var isAsked = false

  func validate() throws { try credential.validate() }

  /// Whether an option names an auth key.
  var areGiven: Bool { credential.isGiven }

  /// The file or the descriptor that is given.
  var sources: [SecretSource] { credential.sources }

  /// The hash of the auth key in an application; nil without an option.
  ///
  /// - Parameter isNew: whether it must be typed twice at the terminal.
  func hash(
    in store: ApplicationStore, of application: ApplicationRecord, isNew: Bool = false
  ) async throws -> AuthKeyHash? {
    guard let key = try credential.read(for: ("application", application.name), isNew: isNew) else {
      return nil
    }
    guard key.count <= AuthKeyHasher.maximumByteCount else {
      throw CommandFailure(
        .badData, "an auth key of \(key.count) bytes is too long",
        hint: "use at most \(AuthKeyHasher.maximumByteCount)")
    }
    guard case .other = try await store.signer(of: application.id).read(key) else {
      throw CommandFailure(
        .badData, "the auth key is a token, which no grant reaches",
        hint: "a token carries its rights: run datavaultd token grant, or give --token-file")
    }
    return try store.keys.hasher.hash(key, of: application.id)
  }

  private var credential: ClientCredential {
    ClientCredential(
      what: "auth key", option: "auth-key", file: file, descriptor: descriptor, isAsked: isAsked)
  }
}

/// The options that name a token.
struct TokenOptions: ParsableArguments {
  @Option(
    name: .customLong("token-file"),
    help: ArgumentHelp(
      "Read a token from a file. A final newline is ignored.", valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong("token-fd"),
    help: ArgumentHelp("Read a token from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Flag(
    name: .customLong("token-prompt"), help: "Ask for a token at the terminal, without echo.")
  var isAsked = false

  func validate() throws { try credential.validate() }

  /// Whether an option names a token.
  var areGiven: Bool { credential.isGiven }

  /// The file or the descriptor that is given.
  var sources: [SecretSource] { credential.sources }

  /// The text of the token; nil without an option.
  ///
  /// - Parameter owner: the kind and the name of what the user is asked about.
  func read(for owner: (kind: String, name: String)) throws -> [UInt8]? {
    try credential.read(for: owner)
  }

  /// The failure for a text that has not the form of a token.
  static let isNoToken = CommandFailure(
    .badData, "the given text is not a token", hint: "give an auth key by --auth-key-file")

  private var credential: ClientCredential {
    ClientCredential(
      what: "token", option: "token", file: file, descriptor: descriptor, isAsked: isAsked)
  }
}

/// The options that name the password of a user; without one, it is asked for.
struct UserPasswordOptions: ParsableArguments {
  @Option(
    name: .customLong("user-password-file"),
    help: ArgumentHelp(
      "Read the user's password from a file. A final newline is ignored.", valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong("user-password-fd"),
    help: ArgumentHelp("Read the user's password from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  func validate() throws {
    guard file == nil || descriptor == nil else {
      throw ValidationError("give only one of --user-password-file and --user-password-fd")
    }
  }

  /// The file or the descriptor that is given.
  var sources: [SecretSource] { SecretSource.given(files: [file], [descriptor]) }

  /// The password, which is typed twice at the terminal.
  func read(for user: String) throws -> SecretBytes {
    if let file { return try SecretInput.file(file).read() }
    if let descriptor { return try SecretInput.descriptor(descriptor).read() }
    return try SecretInput.terminal(
      SecretInput.Question(
        what: "password", owner: ("user", user), isRepeated: true,
        hint: "give --user-password-file FILE or --user-password-fd N")
    ).read()
  }
}

/// The URL of a webhook: an argument, or a file or a descriptor, because other processes can read arguments.
struct WebhookURLOptions: ParsableArguments {
  @Argument(help: "The URL that takes the events: https://HOST/PATH, at most 1024 bytes.")
  var url: String?

  @Option(
    name: .customLong("url-file"),
    help: ArgumentHelp(
      "Read a URL that is secret from a file. A final newline is ignored.", valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong("url-fd"),
    help: ArgumentHelp("Read a URL that is secret from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  func validate() throws {
    guard [url != nil, file != nil, descriptor != nil].count(where: { $0 }) == 1 else {
      throw ValidationError("give one of URL, --url-file and --url-fd")
    }
  }

  /// The file or the descriptor that is given.
  var sources: [SecretSource] { SecretSource.given(files: [file], [descriptor]) }

  func read() throws -> WebhookURL {
    let credential = ClientCredential(
      what: "URL", option: "url", file: file, descriptor: descriptor, isAsked: false)
    guard let bytes = try credential.read(for: ("webhook", "")) else {
      return try WebhookURL(url ?? "")
    }
    return try WebhookURL(String(decoding: bytes, as: UTF8.self))
  }
}

/// A credential of a client, and the options that name it.
private struct ClientCredential {
  let what: String
  let option: String
  let file: String?
  let descriptor: Int32?
  let isAsked: Bool

  var isGiven: Bool { file != nil || descriptor != nil || isAsked }

  var sources: [SecretSource] { SecretSource.given(files: [file], [descriptor]) }

  func validate() throws {
    guard [file != nil, descriptor != nil, isAsked].count(where: { $0 }) <= 1 else {
      throw ValidationError(
        "give only one of --\(option)-file, --\(option)-fd and --\(option)-prompt")
    }
  }

  func read(for owner: (kind: String, name: String), isNew: Bool = false) throws -> [UInt8]? {
    guard isGiven else { return nil }
    let input: SecretInput =
      if let file {
        .file(file)
      } else if let descriptor {
        .descriptor(descriptor)
      } else {
        .terminal(
          SecretInput.Question(
            what: what, owner: owner, isRepeated: isNew,
            hint: "give --\(option)-file FILE or --\(option)-fd N"))
      }
    let secret = try input.read()
    return unsafe secret.withUnsafeBytes { unsafe Array($0) }
  }
}
