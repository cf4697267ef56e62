internal import Glibc
internal import VaultCrypto

/// Where a password, a salt or a recovery code comes from, other than the terminal.
///
/// Never arguments, never the environment.
enum SecretSource {
  case file(String)
  case descriptor(Int32)
  /// A name in the directory that systemd hands to the service. See systemd.exec(5),
  /// `LoadCredential=`.
  case credential(String)

  /// The most bytes a password or a salt may have.
  static let maximumByteCount = 64 << 10

  /// Reads all of it into locked memory; one final newline is not part of it.
  func read() throws(CommandFailure) -> SecretBytes {
    switch self {
    case .file(let path):
      return try Self.read(file: path)
    case .descriptor(let number):
      return try Self.read(descriptor: number, name: "file descriptor \(number)")
    case .credential(let name):
      return try Self.read(file: Self.path(ofCredential: name))
    }
  }

  private static func path(ofCredential name: String) throws(CommandFailure) -> String {
    guard !name.isEmpty, !name.contains("/"), name != ".", name != ".." else {
      throw CommandFailure(.usage, "a credential's name has no slash")
    }
    guard let directory = Environment["CREDENTIALS_DIRECTORY"] else {
      throw CommandFailure(
        .notPermitted, "there is no credential \(name): CREDENTIALS_DIRECTORY is not set",
        hint: "run this in a unit with LoadCredential= or LoadCredentialEncrypted=")
    }
    return "\(directory)/\(name)"
  }

  private static func read(file path: String) throws(CommandFailure) -> SecretBytes {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw CommandFailure(
        .notPermitted, "\(path) cannot be read: \(systemMessage(errno))",
        hint: "the password, salt, code or key has to come from there")
    }
    defer { _ = close(descriptor) }
    return try read(descriptor: descriptor, name: path)
  }

  private static func read(
    descriptor: Int32, name: String
  ) throws(CommandFailure) -> SecretBytes {
    let bytes = try SecretInput.read(
      descriptor: descriptor, name: name, maximumByteCount: maximumByteCount)
    let byteCount = bytes.byteCount
    let endsWithNewline = bytes.withBytes {
      unsafe byteCount > 0
        && $0.unsafeLoad(fromByteOffset: byteCount - 1, as: UInt8.self) == 0x0A
    }
    return bytes.copy(0..<(endsWithNewline ? byteCount - 1 : byteCount))
  }
}
