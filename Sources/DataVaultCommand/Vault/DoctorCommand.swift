internal import ArgumentParser
internal import DataVault
internal import MessagingQueue
internal import VaultCrypto
internal import VaultedDatabase

/// The command `datavault doctor`.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Diagnose problems and suggest fixes.",
    discussion: """
      Example:
        datavault doctor --password-file password.txt

      The command never asks for a password and repairs nothing. It checks whether the queue was \
      rolled back only if it can open the messaging vault: through a session, or with an \
      unlocking option.

      An error makes vaults or the queue unusable. The exit code is then the one that using them \
      would have. If there are only warnings, the exit code is 0.
      """)

  @OptionGroup var report: ReportOptions
  @OptionGroup var access: AccessOptions

  func run() async throws {
    let home = try access.home()
    let vaults = await VaultDoctor.examine(home.store)
    _ = LockedMemory.takeWarning()  // the findings include it
    let files = await HomeDoctor.examine(home)
    var findings = vaults.map(FindingReport.init) + files.map(FindingReport.init)
    var refusal: (any Error)?
    if !findings.contains(where: { !$0.isWarning }) {
      do {
        findings += try await rollbackFindings(of: home).map(FindingReport.init)
      } catch {
        refusal = error  // such as a wrong password: the findings are printed first
      }
    }
    try report.print(["findings": findings]) {
      (refusal == nil && findings.allSatisfy(\.isNote) ? "no problems found\n" : "")
        + findings.map(\.text).joined()
    }
    if let refusal { throw refusal }
    if let exitStatus = findings.lazy.compactMap(\.exitStatus).first {
      throw CommandFailure(
        exitStatus, "the doctor found errors in home \(home.path)",
        hint: "apply the fixes that are printed to standard output")
    }
  }

  /// What the command can tell about a rollback of the queue without asking for a password.
  private func rollbackFindings(of home: DataVaultHome) async throws -> [HomeFinding] {
    let status = try? await Vault.get(.messaging, in: home.store).status()
    guard let status, status.binding?.state == .bound else { return [] }
    let vault: Vault
    if access.credentials.areGiven {
      vault = try await access.open(.messaging)
    } else {
      vault = try await Vault.get(.messaging, in: home.store)
      // Under the publicly known password, anyone can make an older copy match the vault.
      guard status.isSecured else { return [] }
      guard (try? await vault.unlockWithSession()) == true else {
        return [
          .rollbackNotChecked(
            "the messaging vault is locked",
            fix: "start a session (`datavault unlock messaging`), or give --password-file FILE")
        ]
      }
    }
    return await MessagingEngine.examineRollback(of: home, vault: vault)
  }
}

/// A finding in the report of `doctor`.
private struct FindingReport: Encodable {
  let kind: String
  let vault: String?
  let isWarning: Bool
  let message: String
  let fix: String
  /// The exit code that the finding causes; nil for a warning.
  let exitStatus: ExitStatus?

  init(_ finding: VaultFinding) {
    kind = finding.kind
    vault = finding.vaultID?.rawValue
    exitStatus = finding.error.flatMap { VaultError.exitCodes[$0] ?? nil }
    isWarning = exitStatus == nil
    message = finding.message
    fix = finding.fix
  }

  init(_ finding: HomeFinding) {
    kind = finding.kind
    vault = nil
    exitStatus = finding.error?.exitStatus
    isWarning = exitStatus == nil
    message = finding.message
    fix = finding.fix
  }

  private enum CodingKeys: CodingKey { case kind, vault, isWarning, message, fix }

  /// Whether it says what was not checked, and not what is wrong.
  var isNote: Bool { kind == HomeFinding.rollbackNotCheckedKind }

  var text: String {
    let word = isNote ? "note" : isWarning ? "warning" : "error"
    return "\(word): \(message.onOneLine)\n  fix: \(fix.onOneLine)\n"
  }
}
