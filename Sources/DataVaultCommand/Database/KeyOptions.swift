internal import ArgumentParser
internal import DataVault
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// The options that name the key of an existing database file.
struct KeyOptions: ParsableArguments {
  @Option(
    name: .customLong("key-file"),
    help: ArgumentHelp("Read the key from a file.", valueName: "file"))
  var file: String?

  @Option(
    name: .customLong("key-fd"),
    help: ArgumentHelp("Read the key from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Option(
    name: .customLong("key-item"),
    help: ArgumentHelp("Read the key from an item of a vault.", valueName: "vault/name"))
  var item: String?

  var choice: KeyChoice {
    KeyChoice(prefix: "", file: file, descriptor: descriptor, item: item)
  }

  func validate() throws { try choice.validate() }
}

/// The options that name the key of a new database file.
struct NewKeyOptions: ParsableArguments {
  @Option(
    name: .customLong("new-key-file"),
    help: ArgumentHelp("Read the new file's key from a file.", valueName: "file"))
  var file: String?

  @Option(
    name: .customLong("new-key-fd"),
    help: ArgumentHelp("Read the new file's key from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Option(
    name: .customLong("new-key-item"),
    help: ArgumentHelp("Read the new file's key from an item of a vault.", valueName: "vault/name"))
  var item: String?

  var choice: KeyChoice {
    KeyChoice(prefix: "new-", file: file, descriptor: descriptor, item: item)
  }

  func validate() throws { try choice.validate() }
}

/// The location of one key, as the options name it.
///
/// At most one of the three is set.
struct KeyChoice {
  /// The prefix of the names `key-file`, `key-fd` and `key-item`: empty or `new-`.
  let prefix: String
  let file: String?
  let descriptor: Int32?
  let item: String?

  var descriptors: [Int32] { [descriptor].compactMap { $0 } }

  func validate() throws {
    guard [file, descriptor.map(String.init), item].count(where: { $0 != nil }) <= 1 else {
      throw ValidationError(
        "give only one of --\(prefix)key-file, --\(prefix)key-fd and --\(prefix)key-item")
    }
    try DescriptorRules.check(descriptors)
  }

  var place: KeyLocation? {
    if let file { return .file(file) }
    if let descriptor { return .descriptor(descriptor) }
    return item.map(KeyLocation.item)
  }

  /// The location, or an error if no option names one.
  func demand() throws(CommandFailure) -> KeyLocation {
    guard let place else {
      throw CommandFailure(
        .notPermitted,
        prefix.isEmpty ? "the database needs a key" : "the new database needs a key",
        hint: "give --\(prefix)key-file FILE, --\(prefix)key-fd N or "
          + "--\(prefix)key-item VAULT/NAME")
    }
    return place
  }
}

/// The location of a database file's key.
///
/// The terminal is not one: 32 bytes are too many to type.
enum KeyLocation {
  case file(String)
  case descriptor(Int32)
  /// An item of a vault, written `VAULT/NAME`.
  case item(String)

  /// Reads the 32 bytes of a sealed database's key.
  ///
  /// - Parameter access: opens the vault if the key is an item.
  func readKey(_ access: AccessOptions) async throws -> SecretBytes {
    switch self {
    case .file(let path): try KeySource.file(FilePath(path)).read()
    case .descriptor(let number): try KeySource.descriptor(number).read()
    case .item(let text): try await readItem(text, access)
    }
  }

  /// Reads a passphrase, without the final newline of a file.
  func readPassphrase(_ access: AccessOptions) async throws -> SecretBytes {
    switch self {
    case .file(let path): try SecretSource.file(path).read()
    case .descriptor(let number): try SecretSource.descriptor(number).read()
    case .item(let text): try await readItem(text, access)
    }
  }

  private func readItem(_ text: String, _ access: AccessOptions) async throws -> SecretBytes {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      throw CommandFailure(
        .usage, "'\(text)' does not name an item", hint: "write VAULT/NAME")
    }
    let vault = try await access.open(VaultID(String(parts[0])))
    return try await vault.item(String(parts[1])).bytes.copy()
  }
}
