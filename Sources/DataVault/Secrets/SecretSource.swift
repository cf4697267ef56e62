internal import FileLayer
internal import Glibc
public import SystemPackage
public import VaultCrypto

/// The place of a password, a salt or a recovery code outside this process.
///
/// One rule holds for every source: one newline at the end does not belong to the secret, and every other byte
/// does. A secret has 1 byte to 64 KiB.
///
///     let password = try await SecretSource.credential("messaging-password").read()
///     try await vault.unlock(with: Credentials(password: password))
///
/// Arguments and environment variables are no sources, because other processes can read them.
public enum SecretSource: Sendable, Hashable {
  /// A file that only its owner can read or write.
  ///
  /// The mode of a pipe, of `/dev/stdin` and of `/dev/fd/N` is not checked.
  case file(FilePath)
  /// An open descriptor, which is read to its end and stays open.
  case descriptor(Int32)
  /// The name of a file in `$CREDENTIALS_DIRECTORY`, the directory of credentials that systemd gives to a service.
  ///
  /// See systemd.exec(5), `LoadCredential=`.
  case credential(String)
  /// A program and its arguments, which no shell interprets; the secret is its standard output.
  ///
  /// A program without a slash in its name is found in `$PATH`. Its standard input is `/dev/null`, its standard
  /// error is this process's. It must end with exit code 0 within the time limit, by default 30 seconds. After
  /// that time, the program and its process group are killed. It cannot ask at the terminal, of which it is in a
  /// background group.
  case command([String], timeLimit: Duration = .seconds(30))

  /// The maximum size of a secret without its final newline, in bytes.
  public static let maximumByteCount = 64 << 10

  /// Reads the secret from the kernel straight into locked memory.
  ///
  /// The call waits for the other end of a pipe on a thread of its own, never on the cooperative pool. A pipe
  /// gives its secret once.
  ///
  /// - Throws: `secretUnavailable` for a secret that is missing or empty, and for a command that fails;
  ///   `secretTooLarge`, `permissionsTooOpen`, `unreadable`; `invalidArgument` for the name of a credential that is
  ///   not a file name, and for a command without a program.
  public func read() async throws(VaultError) -> SecretBytes {
    try await SecretThread().read(self)
  }

  /// As ``read()``, but on the calling thread.
  ///
  /// - Parameter allowsEmpty: whether the caller refuses an empty secret itself.
  package func readBlocking(allowsEmpty: Bool = false) throws(VaultError) -> SecretBytes {
    let secret =
      switch self {
      case .file(let path): try Self.read(file: path)
      case .descriptor(let number):
        try SecretReader(number, name: "file descriptor \(number)").readSecret()
      case .credential(let name): try Self.read(file: Self.path(ofCredential: name))
      case .command(let arguments, let timeLimit):
        try SecretCommand(arguments, timeLimit: timeLimit).output()
      }
    guard secret.byteCount > 0 || allowsEmpty else {
      throw VaultError(
        .secretUnavailable, "\(name) is empty",
        hint: "write the secret there, or use another source")
    }
    return secret
  }

  /// What a message calls the source.
  private var name: String {
    switch self {
    case .file(let path): path.string
    case .descriptor(let number): "file descriptor \(number)"
    case .credential(let name): "credential '\(name)'"
    case .command(let arguments, _): "the output of command '\(arguments.first ?? "")'"
    }
  }

  private static func path(ofCredential name: String) throws(VaultError) -> FilePath {
    guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
      throw VaultError(.invalidArgument, "the credential name '\(name)' is not a file name")
    }
    let directory = unsafe getenv("CREDENTIALS_DIRECTORY").map { unsafe String(cString: $0) }
    guard let directory, !directory.isEmpty else {
      throw VaultError(
        .secretUnavailable, "credential '\(name)' not found: CREDENTIALS_DIRECTORY is not set",
        hint: "run the program in a unit with LoadCredential= or LoadCredentialEncrypted=")
    }
    return FilePath("\(directory)/\(name)")
  }

  private static func read(file path: FilePath) throws(VaultError) -> SecretBytes {
    let descriptor = unsafe open(path.string, O_RDONLY | O_CLOEXEC | O_NOCTTY)
    guard descriptor >= 0 else {
      let reason = Errno(rawValue: errno)
      guard reason != .ioError else { throw .unreadableSecret(path.string, reason) }
      throw VaultError(
        .secretUnavailable, "\(path) cannot be read: \(reason)",
        hint: "check the path: the password, salt, code or key must be in that file")
    }
    defer { _ = close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw .unreadableSecret(path.string, Errno(rawValue: errno))
    }
    if let reason = SecretFile.refusal(mode: status.st_mode, path: path.string) {
      throw VaultError(
        .permissionsTooOpen, "refusing the secret in \(path): \(reason)",
        hint: "chmod 600 \(path.shellWord)")
    }
    return try SecretReader(descriptor, name: path.string).readSecret()
  }
}

/// The thread on which one secret is read.
private actor SecretThread: BlockingActor {
  let executor = BlockingExecutor(label: "datavault.secret")

  func read(_ source: SecretSource) throws(VaultError) -> SecretBytes {
    try source.readBlocking()
  }
}

extension VaultError {
  /// The error for a source that exists and that the system fails to read.
  static func unreadableSecret(_ name: String, _ reason: Errno) -> VaultError {
    VaultError(.unreadable, "\(name) cannot be read: \(reason)")
  }
}
