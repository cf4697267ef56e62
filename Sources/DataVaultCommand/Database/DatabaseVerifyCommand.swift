internal import ArgumentParser
internal import SealedSQLite
internal import SealedVFS
internal import SystemPackage

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
    let findings = VerificationReport(file: file, verification)
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
