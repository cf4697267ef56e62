internal import ArgumentParser
internal import CommandInterface
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage
internal import VaultCrypto

/// The command `datavault database verify FILE`.
struct DatabaseVerifyCommand: DatabaseFileCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check a sealed database and list its damaged pages.",
    discussion: """
      The command reads every page, the write-ahead log and the journal, and changes nothing. If \
      every page is authentic, SQLite then checks that the contents of the pages are consistent. \
      This takes longer than the reading; --quick omits it.

      The command fails with 65 if something is damaged. It fails with 75 while a process has the \
      database open in WAL mode.
      """)

  @Argument(help: "The database.", completion: .file()) var file: String
  @Flag(help: "Omit SQLite's check of the contents.") var quick = false
  @OptionGroup var report: ReportOptions
  @OptionGroup var keyOptions: KeyOptions<ExistingDatabase>
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws {
    try FileAndNewFile.requireName(file, "FILE")
    try checkSources()
  }

  func run() async throws {
    let key = try await key()
    let verification = try ProgressLine.during("verifying") { progress in
      try SealedDatabase.verify(
        at: FilePath(file), key: key, checksContents: !quick, progress: progress)
    }
    let findings = VerificationOutput(file: file, verification)
    try report.print(findings) { findings.text }
    guard verification.isAuthentic else {
      throw CommandFailure(
        .badData, "\(file) is damaged",
        hint: "keep the files unchanged; datavault database salvage copies the intact rows")
    }
    guard verification.isClean else {
      throw CommandFailure(
        .badData, "\(file): its pages contradict each other",
        hint: "every page is authentic, so one is probably an older version: compare a backup")
    }
  }
}

/// The command `datavault database salvage FILE NEW-FILE`.
struct DatabaseSalvageCommand: DatabaseFileCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract: "Copy the intact rows of a damaged database into a new one.",
    discussion: """
      Example:
        datavault database salvage app.db new.db --key-file app.key

      The command reports the losses of each table, and fails with 65 if something was lost. It \
      does not change FILE. Without a --new-key option, the new file gets the same key. The \
      command fails with 75 while a process has the database open in WAL mode.
      """)

  @OptionGroup var files: FileAndNewFile
  @OptionGroup var newKeyOptions: KeyOptions<NewDatabase>
  @OptionGroup var report: ReportOptions
  @OptionGroup var keyOptions: KeyOptions<ExistingDatabase>
  @OptionGroup var homeOptions: HomeOptions
  @OptionGroup var credentials: CredentialOptions

  func validate() throws { try checkSources(with: newKeyOptions) }

  func run() async throws {
    let key = try await key()
    let newKey =
      newKeyOptions.isGiven ? try await newKeyOptions.readKey(self) : key.copy()
    let salvage = try ProgressLine.during("copying") { progress in
      try SealedDatabase.salvage(
        from: files.source, key: key, to: files.target, newKey: newKey, progress: progress)
    }
    let findings = SalvageOutput(file: files.file, newFile: files.newFile, salvage)
    try report.print(findings) { findings.text }
    guard salvage.isComplete else {
      throw CommandFailure(
        .badData, "not everything in \(files.file) could be copied",
        hint: "the intact rows are in \(files.newFile)")
    }
  }
}
