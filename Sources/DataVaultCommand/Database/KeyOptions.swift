internal import ArgumentParser
internal import CommandInterface
internal import DataVault
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// A database file whose key options name.
protocol KeyedDatabase {
  /// The prefix of the names `key-file`, `key-fd` and `key-item`.
  static var optionPrefix: String { get }
  /// The file, as an error names it.
  static var name: String { get }
  /// Its key, as the help names it.
  static var keyName: String { get }
}

enum ExistingDatabase: KeyedDatabase {
  static let optionPrefix = ""
  static let name = "the database"
  static let keyName = "the key"
}

enum NewDatabase: KeyedDatabase {
  static let optionPrefix = "new-"
  static let name = "the new database"
  static let keyName = "the new file's key"
}

/// The options that name the key of a database file.
///
/// At most one of the three is set. The terminal is no source: 32 bytes are too many to type.
struct KeyOptions<Database: KeyedDatabase>: ParsableArguments {
  @Option(
    name: .customLong("\(Database.optionPrefix)key-file"),
    help: ArgumentHelp("Read \(Database.keyName) from a file.", valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong("\(Database.optionPrefix)key-fd"),
    help: ArgumentHelp("Read \(Database.keyName) from a file descriptor.", valueName: "n"))
  var descriptor: Int32?

  @Option(
    name: .customLong("\(Database.optionPrefix)key-item"),
    help: ArgumentHelp(
      "Read \(Database.keyName) from an item of a vault.", valueName: "vault/name"))
  var item: String?

  var isGiven: Bool { file != nil || descriptor != nil || item != nil }

  /// The file or the descriptor that is given.
  var sources: [SecretSource] { SecretSource.given(files: [file], [descriptor]) }

  func validate() throws {
    guard [file != nil, descriptor != nil, item != nil].count(where: { $0 }) <= 1 else {
      let option = "--\(Database.optionPrefix)key"
      throw ValidationError("give only one of \(option)-file, \(option)-fd and \(option)-item")
    }
    try SecretRules.check(sources)
  }

  /// Reads the 32 bytes of a sealed database's key.
  ///
  /// - Parameter access: opens the vault if the key is an item.
  func readKey(_ access: some VaultAccess) async throws -> SecretBytes {
    if let file { return try KeySource.file(FilePath(file)).read() }
    if let descriptor { return try KeySource.descriptor(descriptor).read() }
    return try await readItem(access)
  }

  /// Reads a passphrase, without the final newline of a file.
  func readPassphrase(_ access: some VaultAccess) async throws -> SecretBytes {
    if let file { return try SecretInput.file(file).read() }
    if let descriptor { return try SecretInput.descriptor(descriptor).read() }
    return try await readItem(access)
  }

  private func readItem(_ access: some VaultAccess) async throws -> SecretBytes {
    guard let item else {
      let option = "--\(Database.optionPrefix)key"
      throw CommandFailure(
        .notPermitted, "\(Database.name) needs a key",
        hint: "give \(option)-file FILE, \(option)-fd N or \(option)-item VAULT/NAME")
    }
    let parts = item.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      throw CommandFailure(
        .usage, "'\(item)' does not name an item", hint: "write VAULT/NAME")
    }
    let vault = try await access.open(VaultID(String(parts[0])))
    return try await vault.item(String(parts[1])).bytes.copy()
  }
}

/// A command on a database file, with the options that name its key and open the vault that stores it.
protocol DatabaseFileCommand: AsyncParsableCommand, VaultAccess {
  var keyOptions: KeyOptions<ExistingDatabase> { get }
}

extension DatabaseFileCommand {
  /// Refuses a stream that is given for more than one secret.
  func checkSources(with newKey: KeyOptions<NewDatabase>? = nil) throws {
    try SecretRules.check(
      keyOptions.sources + (newKey?.sources ?? []) + credentials.sources)
  }

  /// Reads the key that an option names.
  func key() async throws -> SecretBytes { try await keyOptions.readKey(self) }

  /// A database file of this format, with the key that an option names for it.
  func file<Database>(
    _ format: DatabaseFormat, at path: FilePath, key: KeyOptions<Database>
  ) async throws -> DatabaseFile {
    switch format {
    case .sealed:
      return .sealed(path, key: try await key.readKey(self))
    case .sqlcipher4:
      return .sqlcipher4(path, key: try SQLCipherKey(await key.readPassphrase(self)))
    case .plain:
      guard !key.isGiven else {
        throw CommandFailure(
          .usage, "a plain database has no key",
          hint: "omit the --\(Database.optionPrefix)key- options")
      }
      return .plain(path)
    }
  }
}
