internal import ArgumentParser
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// `datavault database verify FILE`.
struct DatabaseVerifyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read every page of a sealed database and name the damaged ones.",
    discussion: """
      Its write-ahead log and journal are read too. Where every page is authentic, SQLite checks that \
      their contents agree, which takes longer than the reading. Nothing is changed. Ends with 65 when \
      something is damaged.
      """)

  @Argument(help: ArgumentHelp("The database.", valueName: "file")) var file: String
  @Flag(help: "Leave the contents of the pages unchecked.") var quick = false
  @OptionGroup var access: DatabaseAccess
  @OptionGroup var report: ReportOptions

  func validate() throws { try FileAndNewFile.requireName(file, "FILE") }

  func run() async throws {
    let key = try await access.key()
    let verification = try ProgressLine.during("verifying") { progress in
      try SealedDatabase.verify(
        at: FilePath(file), key: key, checksContents: !quick, progress: progress)
    }
    let findings = VerificationOutput(file: file, verification)
    try report.print(findings) { findings.text }
    guard verification.isAuthentic else {
      throw CommandFailure(
        .badData, "\(file) is damaged",
        hint: "keep the files as they are; datavault database salvage copies what is whole")
    }
    guard verification.isClean else {
      throw CommandFailure(
        .badData, "\(file): its pages contradict each other",
        hint: "every page is authentic: one may be an older version of itself; compare a backup")
    }
  }
}

/// `datavault database salvage FILE NEW-FILE`.
struct DatabaseSalvageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract: "Copy all rows that can still be reached out of a damaged database into a new one.",
    discussion: """
      Reports by table what was lost, and ends with 65 when something was. FILE is not changed. \
      Without a --new-key option the new file has the same key.
      """)

  @OptionGroup var files: FileAndNewFile
  @OptionGroup var access: DatabaseAccess
  @OptionGroup var newKeyOptions: NewKeyOptions
  @OptionGroup var report: ReportOptions

  func validate() throws { try access.checkDescriptors(with: newKeyOptions) }

  func run() async throws {
    let key = try await access.key()
    let newKey =
      if let place = newKeyOptions.choice.place { try await access.read(place) } else { key.copy() }
    let salvage = try ProgressLine.during("copying") { progress in
      try SealedDatabase.salvage(
        from: files.source, key: key, to: files.target, newKey: newKey, progress: progress)
    }
    let findings = SalvageOutput(file: files.file, newFile: files.newFile, salvage)
    try report.print(findings) { findings.text }
    guard salvage.isComplete else {
      throw CommandFailure(
        .badData, "not everything in \(files.file) could be copied",
        hint: "what could is in \(files.newFile)")
    }
  }
}

/// What opens a database file, and the vault that may keep its key.
struct DatabaseAccess: ParsableArguments {
  @OptionGroup var keyOptions: KeyOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try DescriptorRules.check(keyOptions.choice.descriptors + credentials.descriptors)
  }

  /// Two keys and a password cannot come from one descriptor.
  func checkDescriptors(with newKey: NewKeyOptions) throws {
    try DescriptorRules.check(
      keyOptions.choice.descriptors + newKey.choice.descriptors + credentials.descriptors)
  }

  /// The key that was named.
  func key() async throws -> SecretBytes {
    try await read(keyOptions.choice.demand())
  }

  /// A sealed database's key from anywhere, out of a vault of this home where it is an item.
  func read(_ place: KeyLocation) async throws -> SecretBytes {
    try await place.readKey(vaultAccess)
  }

  /// A file of a format with the key that was named for it.
  func file(
    _ format: DatabaseFormat, at path: FilePath, key: KeyChoice
  ) async throws -> DatabaseFile {
    switch format {
    case .sealed:
      return .sealed(path, key: try await read(key.demand()))
    case .sqlcipher4:
      let passphrase = try await key.demand().readPassphrase(vaultAccess)
      return .sqlcipher4(path, key: try SQLCipherKey(passphrase))
    case .plain:
      guard key.place == nil else {
        throw CommandFailure(
          .usage, "a plain database has no key", hint: "leave --\(key.prefix)key- out")
      }
      return .plain(path)
    }
  }

  private func vaultAccess() throws -> VaultAccess {
    VaultAccess(home: try home.home(), credentials: credentials)
  }
}
