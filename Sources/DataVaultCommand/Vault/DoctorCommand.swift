internal import ArgumentParser
internal import DataVault
internal import VaultCrypto
internal import VaultedDatabase

/// `datavault doctor`.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Look for what is not as it should be, each with its fix.",
    discussion: """
      It needs no password, tries none and changes nothing. What keeps vaults from being used ends it \
      with the exit code that using them would have; all else is a warning, and ends it with 0.
      """)

  @OptionGroup var report: ReportOptions
  @OptionGroup var home: HomeOptions

  func run() async throws {
    let findings = await VaultDoctor.examine(try home.home().store)
    _ = LockedMemory.takeWarning()  // it is among the findings
    try report.print(["findings": findings.map(FindingReport.init)]) {
      findings.isEmpty ? "nothing found\n" : findings.map { FindingReport($0).text }.joined()
    }
    if let code = findings.lazy.compactMap(\.error).first {
      throw CommandFailure(
        CommandFailure.status(of: code), "vaults cannot be used as they are",
        hint: "the fixes stand on standard output")
    }
  }
}

/// A finding in the report of `doctor`.
private struct FindingReport: Encodable {
  let kind: String
  let vault: String?
  let isWarning: Bool
  let message: String
  let fix: String

  init(_ finding: VaultFinding) {
    kind = finding.kind.description
    vault = finding.vaultID?.rawValue
    isWarning = finding.error == nil
    message = finding.message
    fix = finding.fix
  }

  var text: String {
    "\(isWarning ? "warning" : "error"): \(message.onOneLine)\n  fix: \(fix.onOneLine)\n"
  }
}
