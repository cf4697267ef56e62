internal import DataVault
internal import FileLayer
internal import Glibc
internal import VaultCrypto

/// The source of a password, a salt or a recovery code.
///
/// Arguments and environment variables are no sources: other processes can read them.
enum SecretSource {
  case file(String)
  case descriptor(Int32)
  /// The name of a file in the directory of credentials that systemd gives to the service. See
  /// systemd.exec(5), `LoadCredential=`.
  case credential(String)
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

  /// The sources that options name, without those that are absent.
  static func given(files: [String?], _ descriptors: [Int32?]) -> [SecretSource] {
    files.compactMap { $0.map(SecretSource.file) }
      + descriptors.compactMap { $0.map(SecretSource.descriptor) }
  }

  /// The maximum size of a password or a salt, in bytes, without the final newline.
  static let maximumByteCount = 64 << 10

  /// Reads the whole secret into locked memory and removes one final newline.
  func read() throws(CommandFailure) -> SecretBytes {
    switch self {
    case .file(let path): try Self.read(file: path)
    case .descriptor(let number):
      try Self.read(descriptor: number, name: "file descriptor \(number)")
    case .credential(let name): try Self.read(file: Self.path(ofCredential: name))
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

  private static func path(ofCredential name: String) throws(CommandFailure) -> String {
    guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
      throw CommandFailure(.usage, "the credential name '\(name)' is not a file name")
    }
    guard let directory = Environment["CREDENTIALS_DIRECTORY"] else {
      throw CommandFailure(
        .notPermitted, "credential '\(name)' not found: CREDENTIALS_DIRECTORY is not set",
        hint: "run the command in a unit with LoadCredential= or LoadCredentialEncrypted=")
    }
    return "\(directory)/\(name)"
  }

  private static func read(file path: String) throws(CommandFailure) -> SecretBytes {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let reason = errno
      let message = "\(path) cannot be read: \(systemMessage(reason))"
      guard reason != EIO else { throw CommandFailure(.inputOutput, message) }
      throw CommandFailure(
        .notPermitted, message,
        hint: "check the path: the password, salt, code or key must be in that file")
    }
    defer { _ = close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      throw CommandFailure(.inputOutput, "\(path) cannot be read: \(systemMessage(errno))")
    }
    if let reason = SecretFile.refusal(mode: status.st_mode, path: path) {
      throw CommandFailure(
        .notPermitted, "refusing the secret in \(path): \(reason)", hint: "chmod 600 \(path)")
    }
    return try read(descriptor: descriptor, name: path)
  }

  private static func read(
    descriptor: Int32, name: String
  ) throws(CommandFailure) -> SecretBytes {
    try SecretInput.read(
      descriptor: descriptor, name: name, maximumByteCount: maximumByteCount,
      dropsFinalNewline: true)
  }
}

/// Reads a descriptor to its end, from the kernel straight into locked memory.
enum SecretInput {
  /// The size of the first buffer.
  ///
  /// A longer secret moves into a buffer of twice the size.
  ///
  /// A small first buffer saves time: locking and wiping a page costs the same whether it is used
  /// or not.
  private static let firstByteCount = 16 << 10

  /// - Parameter dropsFinalNewline: whether one newline at the end does not belong to the input.
  static func read(
    descriptor: Int32, name: String, maximumByteCount: Int, dropsFinalNewline: Bool = false
  ) throws(CommandFailure) -> SecretBytes {
    let limit = maximumByteCount + (dropsFinalNewline ? 2 : 1)
    var bytes = SecretBytes(zeroCount: min(firstByteCount, limit))
    var byteCount = 0
    while byteCount < limit {
      if byteCount == bytes.byteCount { bytes = bytes.grown(to: min(2 * byteCount, limit)) }
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...])
        return unsafe Glibc.read(descriptor, rest.baseAddress, rest.count)
      }
      if count == 0 {
        if dropsFinalNewline, bytes.hasNewline(before: byteCount) { byteCount -= 1 }
        if byteCount <= maximumByteCount { return bytes.copy(0..<byteCount) }
        break
      }
      if count > 0 {
        byteCount += count
      } else if errno == EAGAIN {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        unsafe poll(&entry, 1, -1)
      } else if errno != EINTR {
        throw CommandFailure(.inputOutput, "\(name) cannot be read: \(systemMessage(errno))")
      }
    }
    throw CommandFailure(.badData, "\(name) has more than \(maximumByteCount) bytes")
  }
}

extension SecretBytes {
  /// A copy of the bytes, followed by zeros.
  fileprivate borrowing func grown(to byteCount: Int) -> SecretBytes {
    unsafe SecretBytes(byteCount: byteCount) { target in
      unsafe withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }

  fileprivate borrowing func hasNewline(before end: Int) -> Bool {
    withBytes {
      unsafe end > 0 && $0.unsafeLoad(fromByteOffset: end - 1, as: UInt8.self) == 0x0A
    }
  }
}
