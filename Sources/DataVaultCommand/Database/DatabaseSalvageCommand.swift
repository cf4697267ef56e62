internal import ArgumentParser
internal import SealedSQLite
internal import SystemPackage
internal import VaultCrypto

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
    let findings = SalvageReport(file: files.file, newFile: files.newFile, salvage)
    try report.print(findings) { findings.text }
    guard salvage.isComplete else {
      throw CommandFailure(
        .badData, "not everything in \(files.file) could be copied",
        hint: "what could is in \(files.newFile)")
    }
  }
}
